"""``srun tfmemtop record`` on a real Slurm of two nodes: one file per rank, and the script runs as without tfmemtop."""

import os
import re
import signal
import time
from pathlib import Path

import pexpect
import psutil
import pytest

from tests.patience import PATIENCE_S, until
from tests.slurm.conftest import Slurm
from tests.starting import ran
from tfmemtop.events import Session
from tfmemtop.events.recording import read
from tfmemtop.help import topic

RECORD = ("tfmemtop", "record", "-o", "run-%h-%r.jsonl", "--")
PROGRAM = 'cat; echo "out $SLURM_PROCID"; echo "err $SLURM_PROCID" >&2; exit $((SLURM_PROCID + 3))'

COUNTS = """
import signal, sys, time
heard = []
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
    signal.signal(number, lambda number, _: heard.append(number))
print("up", flush=True)
while signal.SIGTERM not in heard:
    time.sleep(0.05)
time.sleep(0.3)  # for what should not come
print(sorted(map(int, heard)), flush=True)
sys.exit(7)
"""


HEARS = """
import signal, time
heard = []
def hear(number, _):
    heard.append(number)
    print(int(number), flush=True)
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
    signal.signal(number, hear)
print("up", flush=True)
while signal.SIGTERM not in heard:
    time.sleep(0.05)
time.sleep(1)  # for what should not come
"""


def on_terminal(slurm: Slurm, cwd: Path, *command: str) -> "pexpect.spawn[str]":
    """Start ``srun --pty`` with *command* on a terminal."""
    environment = slurm.environment | {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
    words, size = ["--pty", *command], (30, 100)
    return pexpect.spawn("srun", words, PATIENCE_S, cwd=cwd, env=environment, encoding="utf-8", dimensions=size)


def left_of(slurm: Slurm, job: str) -> list[int]:
    """Return the processes that have *job* of this cluster in their environment."""
    found = []
    marks = (f"\0SLURM_JOB_ID={job}\0".encode(), f"\0SLURM_CONF={slurm.environment['SLURM_CONF']}\0".encode())
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = b"\0" + (folder / "environ").read_bytes()
        except OSError:
            continue  # the process has ended, or belongs to another user
        if all(mark in environment for mark in marks):
            found.append(int(folder.name))
    return found


def parent_of(pid: int) -> str:
    """Return the name of the parent of *pid*."""
    parent = psutil.Process(pid).parent()
    return parent.name() if parent else ""


def job_of(slurm: Slurm, cwd: Path) -> str:
    """Return the number of the job that runs."""
    return slurm.run("squeue", "-h", "-o", "%i", cwd=cwd).stdout.split()[0]


def test_ranks_without_a_terminal_are_as_bare_and_have_a_file_each(slurm: Slurm, tmp_path: Path) -> None:
    srun = ("srun", "-N2", "-n2")
    bare = slurm.run(*srun, "sh", "-c", PROGRAM, cwd=tmp_path, stdin="through\n")
    done = slurm.run(*srun, *RECORD, "sh", "-c", PROGRAM, cwd=tmp_path, stdin="through\n")
    assert done.returncode == bare.returncode == 4
    assert sorted(done.stdout.splitlines()) == sorted(bare.stdout.splitlines())
    theirs, ours = ([], [])  # type: tuple[list[str], list[str]]
    for line in done.stderr.splitlines():
        (ours if line.startswith("tfmemtop: ") else theirs).append(line)
    told = [line for line in bare.stderr.splitlines() if "srun: job" not in line]
    assert sorted(line for line in theirs if "srun: job" not in line) == sorted(told)
    assert sorted(line.split(": ")[1] for line in ours) == ["rank 0 of 2", "rank 1 of 2"]
    for rank in (0, 1):
        session = next(read(tmp_path / f"run-node{rank}-{rank}.jsonl").events())
        assert isinstance(session, Session) and session.placement is not None
        place = session.placement
        assert (place.rank, place.ranks, place.host, place.source) == (rank, 2, f"node{rank}", "slurm")
        assert place.job and not left_of(slurm, place.job)


@pytest.mark.parametrize("signal_name", ["KILL", "SEGV"])
def test_slurm_tells_of_a_signal_that_ended_a_rank_as_bare(slurm: Slurm, tmp_path: Path, signal_name: str) -> None:
    script = f"test $SLURM_PROCID = 1 && kill -{signal_name} $$; true"
    srun = ("srun", "-N2", "-n2", "-e", "said-%t")  # srun sometimes loses what a rank writes at such an end
    bare, done = (slurm.run(*srun, *record, "sh", "-c", script, cwd=tmp_path) for record in ((), RECORD))
    assert done.returncode == bare.returncode == 128 + signal.Signals[f"SIG{signal_name}"]
    told = [[line for line in each.stderr.splitlines() if "task 1:" in line] for each in (bare, done)]
    assert told[0] == told[1] and len(told[0]) == 1
    assert re.search(f"rank 1 of 2: [0-9:]+, ended by SIG{signal_name}", (tmp_path / "said-1").read_text())


def test_a_signal_of_slurm_reaches_the_script_once(slurm: Slurm, tmp_path: Path) -> None:
    with slurm.start("srun", "-n1", *RECORD, "python", "-c", COUNTS, cwd=tmp_path) as srun:
        assert srun.stdout and srun.stdout.readline() == "up\n"
        job = job_of(slurm, tmp_path)
        for number in ("USR1", "USR2"):
            slurm.run("scancel", "-s", number, job, cwd=tmp_path)
        slurm.run("scancel", job, cwd=tmp_path)
        assert srun.stdout.readline() == f"{[int(signal.SIGUSR1), int(signal.SIGUSR2), int(signal.SIGTERM)]}\n"
        assert srun.wait(PATIENCE_S) == 7
        assert srun.stderr and "tfmemtop: 00:0" in srun.stderr.read()
    until(lambda: not left_of(slurm, job))


def test_a_job_that_is_started_again_keeps_the_recordings_of_its_first_start(slurm: Slurm, tmp_path: Path) -> None:
    script = 'echo rank up $SLURM_RESTART_COUNT; test -n "$SLURM_RESTART_COUNT" || sleep 300'
    batch = tmp_path / "job.sh"
    record = "tfmemtop record -o 'run-%j-%r.jsonl' --"
    batch.write_text(f"#!/bin/bash\nsrun -N2 -n2 {record} bash -c '{script}'\n")
    output = tmp_path / "out.txt"
    options = ("-N2", "-n2", "--requeue", "--open-mode=append", "-o", str(output))
    job = slurm.run("sbatch", "--parsable", *options, str(batch), cwd=tmp_path).stdout.strip()

    def starts() -> int:
        return output.read_text().count("rank up") if output.exists() else 0

    until(lambda: starts() == 2)
    slurm.run("scontrol", "requeue", job, cwd=tmp_path)
    told = time.monotonic()

    def started_again() -> bool:
        # Slurm would wait for two minutes. Once the first start is over, a new start time can be set. It is set only
        # every two seconds, so that a busy Slurm has the time to start the job.
        nonlocal told
        if time.monotonic() > told + 2:
            slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now", cwd=tmp_path)
            told = time.monotonic()
        return starts() == 4

    until(started_again)
    names = {f"run-{job}-{rank}{start}.jsonl" for rank in (0, 1) for start in ("", "-start2")}
    until(lambda: not left_of(slurm, job))
    assert {path.name for path in tmp_path.glob("*.jsonl")} == names


def test_what_a_script_leaves_behind_ends_with_the_step_as_bare(slurm: Slurm, tmp_path: Path) -> None:
    script = "sleep 300 >/dev/null 2>&1 & echo $SLURM_JOB_ID"
    done = slurm.run("srun", "-n1", *RECORD, "sh", "-c", script, cwd=tmp_path)
    assert done.returncode == 0
    bare = slurm.run("srun", "-n1", "sh", "-c", script, cwd=tmp_path)
    for job in (done.stdout.strip(), bare.stdout.strip()):
        left = left_of(slurm, job)
        names = [Path(f"/proc/{pid}/comm").read_text().strip() for pid in left]
        assert set(names) <= {"sleep"}  # an orphan: this Slurm does not track it, with tfmemtop or without
        for pid in left:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("record", [RECORD, ()])
def test_a_terminal_is_the_scripts(slurm: Slurm, tmp_path: Path, record: tuple[str, ...]) -> None:
    script = "test -t 0 -a -t 1 -a -t 2 && echo terminal; read line; echo heard $line; exit 5"
    with on_terminal(slurm, tmp_path, "-n1", *record, "bash", "-c", script) as srun:
        srun.expect("terminal\r\n")
        srun.sendline("words")
        srun.expect("heard words\r\n")
        srun.expect(pexpect.EOF)
        srun.close()
        assert srun.exitstatus == 5


def test_the_screen_waits_for_the_script_and_nothing_outlives_the_step(slurm: Slurm, tmp_path: Path) -> None:
    """Slurm ends a step when its task ends. A script left running would be killed, or would run on outside the job."""
    stop = tmp_path / "stop"
    script = f"until test -e {stop}; do sleep 0.1; done; exit 6"
    with on_terminal(slurm, tmp_path, "-n1", "tfmemtop", "--", "bash", "-c", script) as srun:
        srun.expect("running")
        job = job_of(slurm, tmp_path)
        srun.send("q")
        srun.expect("leave it running")
        srun.send("l")
        srun.expect("this command waits for it")
        assert left_of(slurm, job)
        stop.touch()
        srun.expect("recorded in")
        srun.expect(pexpect.EOF)
        srun.close()
        assert srun.exitstatus == 6
    until(lambda: not left_of(slurm, job))


def test_a_signal_reaches_the_script_of_a_screen_once(slurm: Slurm, tmp_path: Path) -> None:
    """tfmemtop forwards a signal that is sent to the task only, but not one that all processes of the step receive."""
    heard = tmp_path / "heard"
    script = ("sh", "-c", 'exec python -c "$1" > "$2"', "sh", HEARS, str(heard))
    with on_terminal(slurm, tmp_path, "-n1", "tfmemtop", "--", *script) as srun:
        srun.expect("running")
        until(lambda: heard.exists() and "up" in heard.read_text())
        job = job_of(slurm, tmp_path)
        slurm.run("scancel", "-s", "USR1", job, cwd=tmp_path)
        until(lambda: str(int(signal.SIGUSR1)) in heard.read_text().split())
        (task,) = [pid for pid in left_of(slurm, job) if parent_of(pid) == "slurmstepd"]
        os.kill(task, signal.SIGUSR2)
        until(lambda: str(int(signal.SIGUSR2)) in heard.read_text().split())
        slurm.run("scancel", "-s", "TERM", job, cwd=tmp_path)
        srun.expect("this command waits for it")
        srun.expect(pexpect.EOF)
    signals = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
    assert heard.read_text().split() == ["up", *(str(int(number)) for number in signals)]
    until(lambda: not left_of(slurm, job))


def test_the_manuals_cluster_on_one_machine_starts_and_ends(slurm: Slurm, tmp_path: Path) -> None:
    """The commands are those of the manual's page. The fixture *slurm* skips this test if Slurm is not installed."""
    page = topic("slurm").partition("## Try it on one machine")[2]
    first, _, _, last = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)[:4]
    ports = "Port=[17001-17002]"
    assert ports in first
    first = first.replace(ports, "Port=[27001-27002]").replace(
        "ReturnToService", "SlurmctldPort=27000\nReturnToService"
    )
    wait = "until sinfo -h -N -o %t | grep -c idle | grep -q 2; do sleep 0.1; done"
    use = f"sleep 300 &\necho $! > prometheus.pid\n{wait}\nsrun -N2 -n2 printenv SLURMD_NODENAME"
    environment = {name: value for name, value in slurm.environment.items() if name != "SLURM_CONF"}
    script = f"set -e\n{first}\n{use}\n{last}"
    done = ran(["bash", "-m", "-c", script], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["node0", "node1"]
