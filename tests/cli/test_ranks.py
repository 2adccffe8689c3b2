"""Ranks of one job, each recorded by a tfmemtop of its own."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.commands import printed_by
from tests.patience import PATIENCE_S
from tests.starting import PROGRAM
from tfmemtop.events import Session
from tfmemtop.events.recording import read

pytestmark = pytest.mark.programs


def step(rank: int, ranks: int = 2) -> dict[str, str]:
    """Return the variables that Slurm sets for a task of a step."""
    return {
        "SLURM_JOB_ID": "812",
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": str(rank),
        "SLURM_NTASKS": str(ranks),
        "SLURMD_NODENAME": f"node{rank}",
    }


def start(name: str, folder: Path, place: dict[str, str], *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, "record", "-o", name, "--", *command],
        cwd=folder, env={**os.environ, **place}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_ranks_at_once_and_one_after_the_other_have_files_of_their_own(tmp_path: Path) -> None:
    """All ranks receive the same file name, as in a script that was written for one process. Its folder is made."""
    at_once = [start("of-%j/run.jsonl", tmp_path, step(rank, 3), "cat") for rank in (0, 1)]
    told = [rank.communicate("through", timeout=PATIENCE_S) for rank in at_once]
    late = start("of-%j/run.jsonl", tmp_path, step(2, 3), "true")
    late.communicate(timeout=PATIENCE_S)
    assert [rank.returncode for rank in (*at_once, late)] == [0, 0, 0]
    assert [output for output, _ in told] == ["through", "through"]
    assert "run-rank1.jsonl" in told[1][1]
    folder = tmp_path / "of-812"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["run-rank0.jsonl", "run-rank1.jsonl", "run-rank2.jsonl"]
    for rank, name in enumerate(names):
        first = next(read(folder / name).events())
        assert isinstance(first, Session) and first.placement is not None
        assert (first.placement.rank, first.placement.ranks, first.placement.host) == (rank, 3, f"node{rank}")


def test_without_a_scheduler_the_name_is_still_one_and_a_line_says_so(tmp_path: Path) -> None:
    bare = dict.fromkeys(("SLURM_JOB_ID", "SLURM_PROCID", "RANK", "TF_CONFIG"), "")
    done = start("run-%j-%r.jsonl", tmp_path, bare, "true")
    _, said = done.communicate(timeout=PATIENCE_S)
    (made,) = tmp_path.iterdir()
    assert made.name == f"run-nojob-p{done.pid}.jsonl"
    assert "%j in the file's name became nojob\n" in said and f"%r in the file's name became p{done.pid}" in said


@pytest.mark.usefixtures("home")
def test_the_list_and_why_say_which_rank_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in (step(0, 1), step(3, 4)):
        done = start("run-%r.jsonl", tmp_path, place, "true")
        _, said = done.communicate(timeout=PATIENCE_S)
        ranks = place["SLURM_NTASKS"] != "1"
        # All ranks print to the same place, so each prints only one line.
        assert (len(said.splitlines()) == 1 and "tfmemtop: rank 3 of 4: 00:0" in said) == ranks
        path = tmp_path / f"run-{place['SLURM_PROCID']}.jsonl"
        assert ("It was rank 3 of 4, job 812, on node3." in printed_by(capsys, "why", str(path))) == ranks
        heads, *lines = printed_by(capsys, "ls", "--all").splitlines()
        assert ("JOB  RANK    HOST" in heads, any("812  3 of 4  node3" in line for line in lines)) == (ranks, ranks)
