"""The installed command needs nothing but its Python: no PATH, no shell, no home folder. It adds nothing of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contained import on_read_only, without
from tests.patience import PATIENCE_S
from tests.starting import PROGRAM

pytestmark = pytest.mark.programs

RECORDING = Path(__file__).parents[1] / "recordings" / "cpu-oom.jsonl"
LEFT_OUT = "settings and kept sessions are left out"
TELLS = (sys.executable, "-c", "import os; print(os.environ.get('PATH'))")


@pytest.fixture
def linked(tmp_path: Path) -> str:
    """The command behind a link, as pipx and uv install it."""
    link = tmp_path / "bin" / "tfmemtop"
    link.parent.mkdir()
    link.symlink_to(PROGRAM)
    return str(link)


@pytest.mark.parametrize("path", ["", None, "/opt/foreign"])
def test_it_starts_whatever_the_path_is(tmp_path: Path, linked: str, path: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PATH"}
    done = subprocess.run(
        [linked, "record", "-o", str(tmp_path / "run.jsonl"), "--", *TELLS],
        env=environment if path is None else environment | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (0, f"{path}\n")
    assert all(line.startswith("tfmemtop: ") for line in done.stderr.splitlines()), done.stderr


def test_it_starts_where_there_is_no_shell(tmp_path: Path, linked: str) -> None:
    """As in a container's image that contains Python and little else."""
    hidden = ("sh", "bash", "env", "readlink")
    command = without(hidden, linked, "record", "-o", str(tmp_path / "run.jsonl"), "--", *TELLS)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, f"{os.environ['PATH']}\n"), done.stderr


@pytest.mark.parametrize("home", ["locked", "read-only", "/", "/nonexistent", None])
def test_where_no_home_can_be_used_one_line_says_so_and_the_command_runs(tmp_path: Path, home: str | None) -> None:
    (tmp_path / "locked").mkdir(mode=0)
    (tmp_path / "read-only" / ".local" / "state" / "tfmemtop").mkdir(parents=True, mode=0o500)
    variables = {} if home is None else {"HOME": str(tmp_path / home)}
    usual = on_read_only(tmp_path, PROGRAM, "why", str(RECORDING), HOME=str(tmp_path / "usable"))
    for command, printed in (
        (("record", "--", "echo", "ran"), "ran\n"),
        (("record", "-o", "run.jsonl", "--", "echo", "ran"), "ran\n"),
        (("why", str(RECORDING)), usual.stdout),
        (("--once",), None),
    ):
        done = on_read_only(tmp_path, PROGRAM, *command, **variables)
        assert done.returncode == 0 and printed in (done.stdout, None), done.stderr
        assert done.stderr.count(LEFT_OUT) == 1 and "Traceback" not in done.stderr, done.stderr
        assert done.stderr.startswith("tfmemtop: ") and done.stderr.splitlines()[0].endswith(LEFT_OUT)
    assert (tmp_path / "run.jsonl").stat().st_size
    assert LEFT_OUT not in usual.stderr
