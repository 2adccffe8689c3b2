"""The installed program, as a shell starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contained import on_read_only, without
from tests.patience import PATIENCE_S
from tests.starting import PROGRAM, ran, tfmemtop
from tfmemtop import __version__
from tfmemtop.cli.main import main
from tfmemtop.events import ProcessReadings, Session, decode_event

pytestmark = pytest.mark.programs


def test_the_version_is_told_by_python_m_as_well() -> None:
    assert tfmemtop("--version").stdout == f"tfmemtop {__version__}\n"
    done = ran([sys.executable, "-m", "tfmemtop", "-V"], check=True)
    assert done.stdout == f"tfmemtop {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replay", "/no/such/file"], "cannot read /no/such/file: No such file or directory"),
        (["replay", "/etc/passwd"], "/etc/passwd is no tfmemtop recording"),
        (["replay", "two\nlines"], "cannot read two lines: No such file or directory"),
        (["record", "-o", "run-%q.jsonl", "--", "true"], "-o/--output: %q in a file's name means nothing"),
        (["--", "true"], "standard input is not a terminal: use tfmemtop record"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    arguments: list[str], said: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(os.devnull).open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        code = main(arguments)
    printed, told = capfd.readouterr()
    assert (code, printed) == (2, "")
    assert told.startswith("tfmemtop: " + said)
    assert told.count("\n") == 1


RECORDINGS = Path(__file__).parents[1] / "recordings"
PRINTING = {
    "events": "--once --json",
    "why": f"why {RECORDINGS / 'cpu-oom.jsonl'}",
    "record": "record -o /dev/null -- sh -c 'echo out; exit 3'",
    "refused": "replay /no/such/file",
}


def in_shell(line: str) -> subprocess.CompletedProcess[str]:
    return ran(["bash", "-c", f"{PROGRAM} {line}"])


@pytest.mark.parametrize(
    ("what", "stdout", "said"),
    [
        ("why", ">&-", "standard output is closed"),
        ("events", ">/dev/full", "standard output: No space left on device"),
    ],
)
def test_what_cannot_be_printed_is_said_in_one_line(what: str, stdout: str, said: str) -> None:
    done = in_shell(f"{PRINTING[what]} {stdout}")
    assert done.returncode == 1
    told = [line for line in done.stderr.splitlines() if "driver" not in line]
    assert told == [f"tfmemtop: {said}"]


def test_where_nothing_can_be_said_the_exit_code_still_tells() -> None:
    closed, full = "0>&- 2>&-", "2>/dev/full"
    recorded = in_shell(f"{PRINTING['record']} {closed}")
    assert (recorded.returncode, recorded.stdout) == (3, "out\n")
    assert in_shell(f"{PRINTING['refused']} {full}").returncode == 2
    shown = in_shell(f"{PRINTING['why']} {closed}")
    assert shown.returncode == 0 and shown.stdout.startswith("Out of memory")
    assert in_shell(f"{PRINTING['why']} >/dev/full {full}").returncode == 1


def test_ctrl_c_during_a_reading_is_130_without_a_word(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Opening a pipe to which no process writes blocks until a signal interrupts it.
    program = f"""
import os, sys
from tfmemtop.engine.sources.nvml import Nvml
def read(self):
    print("waiting", flush=True)
    open({str(pipe)!r})
Nvml.read = read
from tfmemtop.cli.main import main
sys.exit(main(["--once"]))
"""
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "waiting\n"
    running.send_signal(signal.SIGINT)
    _, complaint = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, complaint) == (130, "")


def test_in_a_loop_each_reading_begins_with_its_time_and_ends_quietly_when_nobody_reads() -> None:
    """The test reads through a pipe, and closes it when it has read enough."""
    command, pipe = [PROGRAM, "--once", "--json", "--loop", "0.1"], subprocess.PIPE
    running = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    assert running.stdout is not None and running.stderr is not None
    started: list[float] = []
    kinds = set()
    while len(started) < 3:
        event = decode_event(running.stdout.readline().encode())
        kinds.add(type(event))
        if isinstance(event, Session):
            started.append(event.started)
    running.stdout.close()
    assert running.wait(PATIENCE_S) == 128 + signal.SIGPIPE
    assert not [line for line in running.stderr if not line.startswith("tfmemtop: no NVIDIA driver")]
    assert ProcessReadings in kinds
    assert started == sorted(started) and started[2] - started[0] >= 0.2 - 0.01


# The installed command needs nothing but its Python: no PATH, no shell, no home folder. It adds nothing of its own.


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


def test_it_starts_without_a_path(tmp_path: Path, linked: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PATH"}
    done = ran([linked, "record", "-o", str(tmp_path / "run.jsonl"), "--", *TELLS], env=environment)
    assert (done.returncode, done.stdout) == (0, "None\n")
    assert all(line.startswith("tfmemtop: ") for line in done.stderr.splitlines()), done.stderr


def test_it_starts_where_there_is_no_shell(tmp_path: Path, linked: str) -> None:
    """As in a container's image that contains Python and little else."""
    hidden = ("sh", "bash", "env", "readlink")
    command = without(hidden, linked, "record", "-o", str(tmp_path / "run.jsonl"), "--", *TELLS)
    done = ran(command)
    assert (done.returncode, done.stdout) == (0, f"{os.environ['PATH']}\n"), done.stderr


@pytest.mark.parametrize("home", ["read-only", None])
def test_where_no_home_can_be_used_one_line_says_so_and_the_command_runs(tmp_path: Path, home: str | None) -> None:
    (tmp_path / "read-only" / ".local" / "state" / "tfmemtop").mkdir(parents=True, mode=0o500)
    variables = {} if home is None else {"HOME": str(tmp_path / home)}
    printed = ("record", "--", "echo", "ran") if home is None else ("record", "-o", "run.jsonl", "--", "echo", "ran")
    for command in (printed, ("--once",) if home is None else ("why", str(RECORDING))):
        done = on_read_only(tmp_path, PROGRAM, *command, **variables)
        assert done.returncode == 0 and (command != printed or done.stdout == "ran\n"), done.stderr
        assert done.stderr.count(LEFT_OUT) == 1 and "Traceback" not in done.stderr, done.stderr
        assert done.stderr.startswith("tfmemtop: ") and done.stderr.splitlines()[0].endswith(LEFT_OUT)
    assert home is None or (tmp_path / "run.jsonl").stat().st_size


def test_where_the_home_can_be_used_nothing_is_said_of_it(tmp_path: Path) -> None:
    done = on_read_only(tmp_path, PROGRAM, "why", str(RECORDING), HOME=str(tmp_path / "usable"))
    assert done.returncode == 0 and LEFT_OUT not in done.stderr
