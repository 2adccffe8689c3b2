"""The installed program on a real terminal: what it refuses, its exit codes, what it leaves running."""

from __future__ import annotations

import os
import re
import signal
import sys
import termios
from pathlib import Path

import pexpect
import pytest

from tests.own_sessions import own_sessions
from tests.starting import Start, ended, on_pty
from tfmemtop import events as ev
from tfmemtop.events.recording import read

ALTERNATE_SCREEN = "\x1b[?1049h"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--", "./not-executable"], 126, "./not-executable: not executable"),
        (["--record", "not-executable", "--", "true"], 2, "the file exists and is no tfmemtop recording"),
    ],
)
def test_what_cannot_be_started_leaves_the_terminal_as_it_was(
    start: Start, home: Path, arguments: list[str], code: int, said: str
) -> None:
    (home / "not-executable").write_text("years of work")
    found, printed = ended(start(*arguments))
    assert found == code
    assert said in printed
    assert printed.startswith("tfmemtop: ") and printed.count("\n") == 1
    assert ALTERNATE_SCREEN not in printed
    assert (home / "not-executable").read_text() == "years of work"


def test_a_terminal_that_cannot_be_drawn_on_is_refused(start: Start) -> None:
    code, printed = ended(start("--", "true", size=(39, 30)))
    assert (code, "the terminal has 39×30 cells; the screen needs 40×12" in printed) == (2, True)
    code, printed = ended(start("--", "true", TERM="dumb"))
    assert (code, "TERM is dumb or not set" in printed) == (2, True)


def test_the_exit_code_is_the_scripts_own(start: Start) -> None:
    child = start("--", "sh", "-c", "echo out of the script; exit 3")
    child.expect(re.escape(ALTERNATE_SCREEN))
    child.expect("ended with exit code 3")
    child.send("q")
    code, printed = ended(child)
    assert code == 3
    said = printed.rpartition("\x1b[?1049l")[2]
    assert "tfmemtop: run 1 of sh -c 'echo out of the script; exit 3': 00:0" in said
    assert ", ended with exit code 3\r\n" in said and "\r\ntfmemtop: output in " in said
    assert re.search(
        r"\r\ntfmemtop: recorded in \S+/(\w+)\.jsonl\.gz\r\ntfmemtop: tfmemtop why \1 explains it\r\n", said
    )
    assert "\x1b[?1049l" in printed, "the terminal is given back"
    assert own_sessions() == []


def test_left_running_it_says_where_and_attach_brings_it_back(start: Start, home: Path) -> None:
    child = start("--record", "run.jsonl", "--", "sh", "-c", "echo first words; read answer; echo got $answer; exit 7")
    child.expect("first words")
    child.send("q")
    child.expect("The script is still running")
    child.send("l")
    child.expect(r"tfmemtop: still running as (\w+); output in (\S+); tfmemtop attach \1 brings the screen back\r\n")
    assert isinstance(child.match, re.Match)
    name, output = child.match.groups()
    assert "has ended unexpectedly" not in (child.before or "")
    assert ended(child)[0] == 0
    assert "first words" in Path(output).read_text()

    again = start("attach", name)
    again.expect("first words")
    again.send("q")
    again.expect("The script is still running")
    again.send("s")
    code, _ = ended(again)
    assert code == 128 + signal.SIGTERM
    recording = read(home / "run.jsonl")
    assert recording.session.id == name
    ends = [event for event in recording.events() if isinstance(event, ev.RunEnd)]
    assert [end.signal for end in ends] == [signal.SIGTERM]
    assert recording.damaged == 0


def test_attach_without_a_name_tells_that_other_sessions_run(start: Start) -> None:
    for word in ("first", "second"):
        start("--", "sh", "-c", f"echo the {word}; read answer").expect(f"the {word}")
    start("attach").expect(r"newest of \d")  # sessions of other tests may run too


def test_a_killed_monitor_leaves_the_script_alone(start: Start, home: Path) -> None:
    goes_on = home / "pipe"
    os.mkfifo(goes_on)
    child = start("--", "sh", "-c", f"echo started; cat {goes_on} > went-on; exit 0")
    child.expect("started")
    child.kill(signal.SIGKILL)
    child.expect(pexpect.EOF)
    goes_on.write_text("still here")
    (session,) = own_sessions()
    again = start("attach", session.id)
    again.expect("ended with exit code 0")
    assert (home / "went-on").read_text() == "still here"
    again.send("q")
    assert ended(again)[0] == 0


def _stop(child: pexpect.spawn[str]) -> None:
    assert child.pid is not None
    child.kill(signal.SIGSTOP)
    os.waitpid(child.pid, os.WUNTRACED)


def _threads(child: pexpect.spawn[str]) -> int:
    return len(list(Path(f"/proc/{child.pid}/task").iterdir()))


def test_stopped_and_continued_it_goes_on_and_gives_the_terminal_back(start: Start) -> None:
    child = start()
    before = termios.tcgetattr(child.child_fd)
    child.expect("Processes")
    threads = _threads(child)
    for answer in ("The screen", "Processes") * 3 + ("The screen",):
        _stop(child)
        child.kill(signal.SIGCONT)
        child.send("h")  # the answer comes after the signals were handled
        child.expect(answer)
    assert _threads(child) < threads + 7, "no thread is left of each time; those that read start when they are needed"
    # A shell that takes the terminal back at a stop sets its own modes.
    _stop(child)
    termios.tcsetattr(child.child_fd, termios.TCSANOW, before)
    child.kill(signal.SIGCONT)
    child.expect(re.escape(ALTERNATE_SCREEN))
    child.expect("The screen")
    child.send("\x03q")
    child.expect(re.escape("\x1b[?1049l"))
    assert child.wait() == 0
    assert termios.tcgetattr(child.child_fd) == before


def test_the_demo_without_tensorflow_names_the_remedy(home: Path) -> None:
    # If the search for TensorFlow finds nothing, the program behaves as in a Python without TensorFlow.
    program = """
import importlib.util, sys
from tfmemtop.cli import demo
demo.find_spec = lambda name: None
from tfmemtop.cli.main import main
sys.exit(main(["demo"]))
"""
    code, printed = ended(on_pty(sys.executable, "-c", program))
    assert (code, printed) == (2, "tfmemtop: the demo needs TensorFlow: pip install 'tfmemtop[demo]'\r\n")


# Keys while a script prints without pause, on a real terminal.


def test_a_key_is_acted_on_while_the_script_prints_without_pause(start: Start) -> None:
    child = start("--", "yes", size=(100, 30))
    child.expect("Output")
    child.expect("00:0[0-9]:(?!00)[0-9]{2}")  # the script has printed for a second
    for key, answer in (("?", "tfmemtop help keys"), ("h", "Output"), ("q", "The script is still running")):
        child.send(key)
        child.expect(answer)
    child.send("s")
    assert ended(child)[0] == 128 + signal.SIGTERM


# The script's terminal has the size of its panel from the start, and keeps this size.


# The script is one process, because each process is a row in the table. So it does not call stty, and it is not run by
# "python3", which starts further processes on some machines.
ASKS_TWICE = """import os
def ask():
    columns, rows = os.get_terminal_size()
    print(rows, columns)
ask()
input()
ask()
raise SystemExit(5)
"""


def test_it_starts_in_the_size_that_it_has_once_all_is_drawn(start: Start, home: Path) -> None:
    (home / "py").symlink_to(sys.executable)
    child = start("--record", "run.jsonl", "--", "./py", "-c", ASKS_TWICE, size=(80, 24))
    child.expect("Output")
    child.expect("py -c import")  # its row in the table shows that readings have come
    child.send("i")
    child.expect("typing")
    child.send("go\r\x1d")
    child.expect("ended with exit code 5")
    child.send("q")
    assert ended(child)[0] == 5
    recorded = list(read(home / "run.jsonl").events())
    printed = "".join(event.text for event in recorded if isinstance(event, ev.Output))
    told = [(event.rows, event.columns) for event in recorded if isinstance(event, ev.Terminal)]
    sizes = [(int(rows), int(columns)) for rows, columns in re.findall(r"(\d+) (\d+)\r\n", printed)]
    assert len(told) == 1 and sizes == told * 2


# The terminal receives a bell and a notification when a run has ended, for a user who looks elsewhere.


WAITS = 'echo up; read -r line <"$0"; exit 3'


@pytest.fixture
def gate(home: Path) -> Path:
    """A FIFO at which the script waits until something is written to it."""
    path = home / "gate"
    os.mkfifo(path)
    return path


def until_end(start: Start, gate: Path, *options: str, **environment: str) -> str:
    """Start a run, end it through *gate*, then leave the screen. Return all that the screen wrote."""
    screen = start(*options, "--", "sh", "-c", WAITS, str(gate), **environment)
    screen.expect("up")
    seen = screen.before or ""
    gate.write_text("go\n")
    screen.expect("ended with exit code 3")
    seen += (screen.before or "") + str(screen.after)
    screen.send("q")
    screen.expect(pexpect.EOF)
    return seen + (screen.before or "")


@pytest.mark.parametrize(
    ("options", "variables", "sequences"),
    [
        ((), {}, ["\a\x1b]9;tfmemtop: run 1 ended with exit code 3"]),
        ((), {"VTE_VERSION": "7600"}, ["\a\x1b]777;notify;tfmemtop;run 1 ended with exit code 3"]),
        (("--no-notify",), {}, []),
    ],
    ids=["usual", "vte", "none"],
)
def test_the_bell_and_a_notification_tell_of_the_end(
    start: Start, gate: Path, options: tuple[str, ...], variables: dict[str, str], sequences: list[str]
) -> None:
    """A terminal that knows only the other sequence gets that. A user who wants none gets none."""
    written = until_end(start, gate, *options, **variables)
    assert re.findall(r"\a?\x1b\](?:9|777);[^\x07]*?exit code 3", written) == sequences
