"""A few cases of each corpus, always the same ones. Each whole corpus is one command, which its module names."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.corpus.tables import SCRIPTS

_LIVE = (
    "signals-killed-kill",
    "stdio-utf8",
)
_PLACES = (
    "live-run-full",
    "record-tmp-full",
    "record-cwd-deleted",
    "other-reaches",
)


def _corpus(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a corpus in a process of its own, because it takes the place of process 1 for all that it starts."""
    return subprocess.run(
        [sys.executable, "-m", f"tests.tools.corpus.{module}", *arguments],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        env=os.environ | {"TFMEMTOP_HANG_S": "60"},
    )


def _differing(tmp_path: Path, *arguments: str) -> tuple[set[str], str]:
    found = tmp_path / "found.json"
    done = _corpus("scripts", "--json", str(found), *arguments)
    assert found.exists(), done.stdout + done.stderr
    return set(json.loads(found.read_text())), done.stdout


def test_odd_scripts_are_recorded_as_if_they_were_not(tmp_path: Path, cache: Path) -> None:
    names = [script.name for script in SCRIPTS if script.quick and not script.tensorflow]
    names = [name for name in names if name not in _LIVE]  # those are recorded in the test of the screen
    differing, told = _differing(tmp_path, "--quick", "--cache", str(cache), *names)
    assert differing == set(), told


def test_odd_scripts_under_the_screen(tmp_path: Path) -> None:
    differing, told = _differing(tmp_path, "--live", *_LIVE)
    assert differing == set(), told


def test_no_kill_of_ours_costs_a_training(cache: Path) -> None:
    done = _corpus("kills", "--seed", "4", "--count", "4", "--jobs", "2", "--quiet", "--cache", str(cache))
    assert "4 kills" in done.stdout and " 0 lost" in done.stdout, done.stdout + done.stderr
    wrong = [trouble for line in done.stdout.splitlines()[:-1] for trouble in re.split(r"\): |; ", line)[1:]]
    assert wrong == [], done.stdout


@pytest.mark.parametrize(("kind", "count"), [("hook", 100), ("recording", 200)])
def test_what_nobody_expects_breaks_nothing(kind: str, count: int) -> None:
    done = _corpus("fuzz", "--count", str(count), kind)
    assert f"{count} messages" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout


def test_full_disks_and_another_user(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    done = _corpus("places", "--json", str(found), *_PLACES)
    if done.stdout.startswith("left out"):
        pytest.skip(done.stdout.strip())
    assert found.exists(), done.stdout + done.stderr
    assert not json.loads(found.read_text()), done.stdout
