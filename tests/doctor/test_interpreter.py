"""Which Python a command starts, and what it reports. The interpreters are real; the user's script is never run."""

import os
import sys
from pathlib import Path

import pytest

from tfmemtop.cli.interpreter import Interpreter, Start, Unclear, ask, resolve

PYTHON = sys.executable
ENVIRONMENT = dict(os.environ)


def words(found: object) -> str:
    assert isinstance(found, Unclear), found
    return found.text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with scripts that leave a trace if they are run, and modules that must not be imported."""
    trace = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    for name, first in {
        "train.py": "",
        "tool": f"#!{PYTHON}\n",
        "tool-isolated": f"#!{PYTHON} -I\n",
        "by-env": "#!/usr/bin/env python\n",
        "by-env-S": "#!/usr/bin/env -S python -E -u\n",
        "json.py": "",
        "loop": f"#!{tmp_path}/loop\n",
    }.items():
        (tmp_path / name).write_text(first + trace)
        (tmp_path / name).chmod(0o755)
    for name, text in {
        "run.sh": "#!/bin/sh\ntrue\n",
        "plain": "no first line\n",
        "gone": "#!/no/such/python\n",
    }.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "notes.txt").write_text("")
    return tmp_path


@pytest.mark.programs
@pytest.mark.parametrize(
    ("command", "arrives"),
    [
        ([PYTHON, "train.py", "-I"], True),
        ([PYTHON, "-u", "-W", "ignore", "-m", "train", "-E"], True),
        ([PYTHON, "-I", "train.py"], False),
        (["./tool"], True),
        (["./tool-isolated"], False),
        (["./by-env", "-I"], True),
        (["./by-env-S"], False),
        (["env", "A=1", PYTHON, "train.py"], True),
    ],
)
def test_whether_the_hook_arrives(folder: Path, command: list[str], arrives: bool) -> None:
    path = f"{Path(PYTHON).parent}{os.pathsep}{ENVIRONMENT['PATH']}"
    start = resolve(command, ENVIRONMENT | {"PATH": path}, folder)
    assert isinstance(start, Start), start
    told = ask(start, folder)
    assert isinstance(told, Interpreter), told
    assert told.hook is arrives
    assert told.version == sys.version.split()[0]
    assert told.tensorflow == "2.21.0" or told.tensorflow is None or told.tensorflow[:2] == "2."
    assert not (folder / "ran").exists(), "nothing of the user's was run or imported"


@pytest.mark.parametrize(
    ("command", "missing", "said"),
    [
        (["no-such-command"], True, "command not found"),
        (["./notes.txt"], True, "cannot be executed"),
        (["./gone"], True, "command not found"),
        (["./run.sh"], False, "run.sh is run by /bin/sh"),
        (["./plain"], False, "is not a Python"),
        (["env", "-i", PYTHON], False, "unknown here"),
        (["./loop"], False, "is run by"),
    ],
)
def test_what_is_no_python_is_told_as_such(folder: Path, command: list[str], missing: bool, said: str) -> None:
    (folder / "make").write_bytes(b"\x7fELF")
    (folder / "make").chmod(0o755)
    found = resolve(command, {"PATH": f"{folder}:/usr/bin:/bin"}, folder)
    assert isinstance(found, Unclear)
    assert (found.missing, said in words(found)) == (missing, True), found


def test_uv_is_asked_for_its_python_as_it_is(folder: Path) -> None:
    (folder / "uv").write_bytes(b"\x7fELF")
    (folder / "uv").chmod(0o755)
    start = resolve(["uv", "run", "train.py", "--lr", "3"], {"PATH": str(folder)}, folder)
    assert isinstance(start, Start) and start.words == (str(folder / "uv"), "run", "--no-sync", "python")
    assert isinstance(resolve(["uv", "run", "-p", "3.11", "train.py"], {"PATH": str(folder)}, folder), Unclear)


@pytest.mark.programs
def test_a_python_that_hangs_or_dies_is_given_up(folder: Path) -> None:
    python = folder / "python3"
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o755)
    start = Start((str(python),), ENVIRONMENT)
    assert words(ask(start, folder, timeout_s=0.3)) == f"{python} did not answer within 0 s"
    python.write_text("#!/bin/sh\necho no library >&2\nexit 127\n")
    assert words(ask(start, folder)) == f"{python} ended with 127: no library"
