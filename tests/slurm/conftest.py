"""A Slurm for these tests only, on this machine: munged, slurmctld and two slurmd, if Debian's packages are there."""

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.starting import ran

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "scontrol", "sinfo")
NODES = ("node0", "node1")

CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
KillWait=5
NodeName=node0 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cores}
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cores}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@dataclass(frozen=True)
class Slurm:
    """The cluster. With the variables ``environment``, Slurm's programs and tfmemtop use this cluster."""

    folder: Path
    environment: dict[str, str]

    def run(self, *command: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm and wait for it."""
        return ran(command, cwd=cwd, env=self.environment, stdin=stdin)

    def start(self, *command: str, cwd: Path) -> subprocess.Popen[str]:
        """Start a command of Slurm."""
        return subprocess.Popen(
            command, cwd=cwd, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    if lacking := [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]:
        pytest.skip(f"Slurm is not installed: no {', '.join(lacking)} (Debian: slurm-wlm, munge)")
    folder = tmp_path_factory.mktemp("slurm")
    folder.chmod(0o755)
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    values = {"host": socket.gethostname(), "user": getpass.getuser(), "folder": folder, "cores": os.cpu_count()}
    (folder / "slurm.conf").write_text(CONFIGURATION.format(**values, ports=_ports(3)))
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "TFMEMTOP"))}
    bin_folder = Path(sys.executable).parent
    environment = own | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": f"{bin_folder}:{_path()}"}
    environment["XDG_STATE_HOME"] = str(folder / "state")
    munged = (
        *("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder / 'munge.sock'}"),
        *(f"--{name}-file={folder / f'munge.{name}'}" for name in ("pid", "log", "seed")),
    )
    started: list[subprocess.Popen[bytes]] = []
    try:
        _start(started, folder, environment, *munged)
        _wait_for((folder / "munge.sock").exists, folder, started)
        _start(started, folder, environment, "slurmctld", "-D", "-c")
        for node in NODES:
            _start(started, folder, environment, "slurmd", "-D", "-N", node)
        _wait_for(lambda: _idle(environment) == len(NODES), folder, started)
        yield Slurm(folder, environment)
        # Jobs that still run after a failed test would outlive the cluster.
        subprocess.run(["scancel", "--user", getpass.getuser()], env=environment, check=False, timeout=PATIENCE_S)
        with suppress(pytest.skip.Exception):
            _wait_for(lambda: _idle(environment) == len(NODES), folder, started)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(PATIENCE_S)


def _path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def _ports(count: int) -> list[int]:
    found = [socket.socket() for _ in range(count)]
    for each in found:
        each.bind(("127.0.0.1", 0))
    numbers = [each.getsockname()[1] for each in found]
    for each in found:
        each.close()
    return numbers


def _start(started: list[subprocess.Popen[bytes]], folder: Path, environment: dict[str, str], *command: str) -> None:
    with (folder / f"{len(started)}-{command[0]}.out").open("wb") as output:
        started.append(subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=folder))


def _idle(environment: dict[str, str]) -> int:
    done = ran(["sinfo", "-h", "-N", "-o", "%t"], env=environment)
    return done.stdout.split().count("idle")


def _wait_for(there: Callable[[], bool], folder: Path, started: list[subprocess.Popen[bytes]]) -> None:
    until = time.monotonic() + 30
    while not there():
        ended = any(process.poll() is not None for process in started)
        if ended or time.monotonic() > until:
            told = "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(folder.glob("*.out")))
            pytest.skip(f"Slurm does not start here: {told}")
        time.sleep(0.05)
