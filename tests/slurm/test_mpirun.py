"""``mpirun tfmemtop record``, with a real Open MPI, and within a batch script of a real Slurm."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.patience import until
from tests.slurm.conftest import Slurm
from tests.starting import ran
from tfmemtop.events import Session
from tfmemtop.events.recording import read
from tfmemtop.placement import Placement

MPIRUN = "mpirun -n 2 --oversubscribe tfmemtop record -o 'run-%r.jsonl' --"
AS_ANYBODY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

pytestmark = pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun (Debian: openmpi-bin)")


def placed(path: Path) -> Placement:
    session = next(read(path).events())
    assert isinstance(session, Session) and session.placement is not None
    return session.placement


@pytest.mark.programs
def test_each_rank_has_its_file_and_its_number(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")} | AS_ANYBODY
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment.get('PATH', os.defpath)}"
    line = f"{MPIRUN} sh -c 'echo $OMPI_COMM_WORLD_RANK'"
    done = ran(["sh", "-c", line], cwd=tmp_path, env=environment, check=True)
    assert sorted(done.stdout.split()) == ["0", "1"]
    for rank in (0, 1):
        found = placed(tmp_path / f"run-{rank}.jsonl")
        assert (found.rank, found.ranks, found.local_rank, found.source) == (rank, 2, rank, "openmpi")


def test_within_slurm_the_ranks_are_those_of_mpirun_and_the_job_is_slurms(slurm: Slurm, tmp_path: Path) -> None:
    variables = " ".join(f"{name}={value}" for name, value in AS_ANYBODY.items())
    line = f"env {variables} {MPIRUN} true"
    output = tmp_path / "out.txt"
    options = ("--parsable", "-N2", "-n2", "-o", str(output))
    job = slurm.run("sbatch", *options, "--wrap", line, cwd=tmp_path).stdout.strip()
    until(lambda: output.exists() and output.read_text().count("recorded in") == 2)
    for rank in (0, 1):
        found = placed(tmp_path / f"run-{rank}.jsonl")
        assert (found.job, found.rank, found.ranks, found.host) == (job, rank, 2, f"node{rank}")
