"""Whatever can fail fails before the script is started. Settings for the user's Python do not affect tfmemtop's."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.disks import small_disk
from tests.engines import Engines
from tests.limited import limited
from tests.own_sessions import own_sessions
from tests.patience import end
from tests.starting import PROGRAM, on_pty, ran
from tfmemtop.engine.stream.folders import open_session, sessions
from tfmemtop.events import Notice, RunEnd

pytestmark = pytest.mark.programs

ISOLATED = (sys.executable, "-I", "-m", "tfmemtop")
"""The same command, isolated from its very start."""


@pytest.fixture
def hostile(tmp_path: Path) -> dict[str, str]:
    """Return an environment meant for another Python, with a folder full of modules that would break tfmemtop."""
    folder = tmp_path / "modules"
    folder.mkdir()
    for name in ("psutil", "json", "signal", "socket", "asyncio", "msgspec", "textual", "random", "tfmemtop"):
        (folder / f"{name}.py").write_text(f"raise ImportError('{name} of another Python')")
    (folder / "sitecustomize.py").write_text("print('a sitecustomize that prints')\nraise RuntimeError('and raises')")
    return os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONHOME": "/no/such/home",
        "PYTHONUNBUFFERED": "1",
        "PYTHONINSPECT": "1",
        "PYTHONDEVMODE": "1",
        "PYTHONPROFILEIMPORTTIME": "1",
        "PYTHONSTARTUP": "/no/such/file",
        "PYTHONWARNINGS": "error",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }


@pytest.mark.parametrize("ours", [ISOLATED, (PROGRAM,)], ids=["isolated", "installed"])
def test_a_recorder_is_deaf_to_what_is_meant_for_the_script(
    tmp_path: Path, hostile: dict[str, str], ours: tuple[str, ...]
) -> None:
    if ours != ISOLATED:  # the installed command begins as any Python does
        for name in ("PYTHONHOME", "PYTHONPROFILEIMPORTTIME"):
            del hostile[name]
        for name in ("sitecustomize", "tfmemtop"):
            Path(hostile["PYTHONPATH"], f"{name}.py").unlink()
    command = ["sh", "-c", f"env -0 >{tmp_path}/env; exit 7"]
    arguments = [*ours, "record", "-o", str(tmp_path / "r"), "--", *command]
    done = ran(arguments, cwd=Path(hostile["PYTHONPATH"]), env=hostile)
    assert (done.returncode, done.stdout) == (7, "")
    assert "Traceback" not in done.stderr and "ended with exit code 7" in done.stderr
    assert _untouched(tmp_path / "env", hostile)


def test_an_engine_and_a_screen_are_too(tmp_path: Path, hostile: dict[str, str]) -> None:
    environment = hostile | {"TERM": "xterm-256color"}
    command = [*ISOLATED, "--", "sh", "-c", f"env -0 >{tmp_path}/env; printf 't%s' old; read line"]
    screen = on_pty(*command, size=(120, 40), cwd=Path(hostile["PYTHONPATH"]), env=environment)
    screen.expect("told")
    assert _untouched(tmp_path / "env", environment)
    _end_all(tmp_path)
    end(screen)


def _untouched(told: Path, given: dict[str, str]) -> bool:
    """Return whether the script had the environment *given*, except for what puts the hook in."""
    variables = dict(entry.split("=", 1) for entry in told.read_text().split("\0") if "=" in entry)
    hook, _, path = variables.pop("PYTHONPATH").partition(os.pathsep)
    assert hook.endswith("inject") and path == given["PYTHONPATH"]
    ours = {name for name in variables if name.startswith("TFMEMTOP_")} | {"_", "PWD", "OLDPWD", "SHLVL", "LINES"}
    ours |= {"COLUMNS", "PYTHONPATH"}
    return {n: v for n, v in variables.items() if n not in ours} == {n: v for n, v in given.items() if n not in ours}


def _end_all(runtime: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        for session in own_sessions():
            os.kill(session.pid, signal.SIGTERM)


def test_no_variable_of_ours_and_no_locale_is_added(tmp_path: Path) -> None:
    """In the C locale Python sets LC_CTYPE, for itself and for every process that it starts."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    arguments = [PROGRAM, "record", "-o", str(tmp_path / "r"), "--", "env"]
    done = ran(arguments, env=environment, check=True)
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names - environment.keys() - {"PYTHONPATH"} == {
        "TFMEMTOP_SOCKET",
        "TFMEMTOP_DATA",
        "TFMEMTOP_INTERVAL",
        "TFMEMTOP_HOLDERS_INTERVAL",
        "TFMEMTOP_SETTINGS",
    }


def test_signals_are_inherited_exactly(tmp_path: Path) -> None:
    """SIGCHLD, which the engine needs, one of the terminal and blocked ones. SIGPIPE is one that Python ignores."""
    told = tmp_path / "told"
    program = """
import os, signal, sys
for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGTTOU, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD, signal.SIGUSR2])
os.execv(sys.argv[1], sys.argv[1:])
"""
    command = ["cp", "/proc/self/status", str(told)]  # no shell: it would change some of the signals
    environment = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm"}
    child = on_pty(sys.executable, "-c", program, PROGRAM, "--", *command, size=(120, 40), env=environment)
    child.expect("exit code 0")  # the screen has noticed the end
    _end_all(tmp_path)
    end(child)
    fields = dict(line.split(":\t") for line in told.read_text().splitlines() if ":\t" in line)
    ignored = {n for n in signal.valid_signals() if int(fields["SigIgn"], 16) >> (n - 1) & 1}
    blocked = {n for n in signal.valid_signals() if int(fields["SigBlk"], 16) >> (n - 1) & 1}
    assert ignored == {signal.SIGCHLD, signal.SIGTTOU, signal.SIGHUP}
    assert blocked == {signal.SIGCHLD, signal.SIGUSR2}


async def test_where_nothing_may_be_written_it_runs_and_is_reachable(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same happens under ``ulimit -f 0``."""
    with limited(resource.RLIMIT_FSIZE, 0):
        screen = await engines.run("sh", "-c", "ulimit -f; echo here; read line")
    await screen.until_shown("0\r\nhere")
    assert [session.command[0] for session in own_sessions()] == ["sh"]
    notice = await screen.until(Notice, lambda notice: notice.key == "output_file")
    assert "File too large" in notice.detail


async def test_a_runtime_folder_that_is_full_is_passed_over(engines: Engines, full_disk: Path) -> None:
    # Not tmp_path: with a long TMPDIR, no path in it is short enough for a socket.
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="tfm", dir="/tmp") as next_best:
        patch.setenv("XDG_RUNTIME_DIR", str(full_disk))
        patch.setenv("TMPDIR", next_best)
        screen = await engines.run("sh", "-c", f"echo here; read line; : {'x' * 900}")
        await screen.until_shown("here")
        (session,) = [session for session in sessions() if session.socket.startswith(next_best)]
        os.kill(session.pid, signal.SIGTERM)
        await screen.until(RunEnd)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system with no room left on it."""
    with small_disk(tmp_path / "full") as folder:
        with contextlib.suppress(OSError):
            (folder / "filler").write_bytes(bytes(1 << 20))
        yield folder


def test_what_dead_owners_left_is_swept_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    arguments = [PROGRAM, "record", "-o", str(tmp_path / "r"), "--", "sh", "-c", "echo up; exec sleep 300"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as recorder:
        assert recorder.stdout and recorder.stdout.readline() == b"up\n"
        (left,) = (tmp_path / "tfmemtop").iterdir()
        children = ran(["pgrep", "-f", "sleep 300", "-P", str(recorder.pid)])
        recorder.kill()
        for child in children.stdout.split():
            os.kill(int(child), signal.SIGKILL)
    first = open_session()
    assert not left.exists()
    second = open_session()
    assert first.path.exists()
    first.close()
    second.close()
    assert list(tmp_path.iterdir()) == [tmp_path / "r"], "the last one removes the folder of all"
