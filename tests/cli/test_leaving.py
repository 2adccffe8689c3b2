"""However the screen ends, from outside or from within: the terminal is restored, and a running script is named."""

from __future__ import annotations

import os
import re
import signal
import sys
import termios
from pathlib import Path

import pexpect
import psutil
import pytest

from tests.own_sessions import own_sessions
from tests.patience import until
from tests.starting import PROGRAM, Start, ended, on_pty

RECORDING = Path(__file__).parents[1] / "recordings" / "cpu-oom.jsonl"
DRAWN = "Processes"
TURNED_ON = {"?1049", "?1000", "?1003", "?1006", "?1004", "?2004"}


class Terminal:
    """A program on a pty, and the modes of the pty before it drew anything."""

    def __init__(self, child: pexpect.spawn[str]) -> None:
        self.child = child
        self.before = termios.tcgetattr(child.child_fd)
        self.printed = ""

    def expect(self, text: str) -> None:
        self.child.expect(text)
        assert isinstance(self.child.after, str)
        self.printed += (self.child.before or "") + self.child.after

    def is_given_back(self, *, drawn: bool = True) -> None:
        """Read to the end, and check that each mode that was turned on is off again.

        With *drawn*, check also that the screen had turned its modes on.
        """
        self.child.expect(pexpect.EOF)
        self.printed += self.child.before or ""
        on: set[str] = set()
        for mode, switch in re.findall(r"\x1b\[(\?\d+)([hl])", self.printed):
            (on.add if switch == "h" else on.discard)(mode)
        if drawn:
            assert set(re.findall(r"\x1b\[(\?\d+)h", self.printed)) >= TURNED_ON, "the screen was drawn"
        assert on - {"?7"} == {"?25"}, "of all modes the cursor is shown, and lines may wrap"
        assert self.printed.count("\x1b[>") <= self.printed.count("\x1b[<u"), "Kitty's keys are left"
        assert termios.tcgetattr(self.child.child_fd) == self.before

    @property
    def said(self) -> str:
        """The text on the terminal after the alternate screen was left."""
        return re.sub(r"\x1b\[[0-?]*[a-z]", "", self.printed.rpartition("\x1b[?1049l")[2]).strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_screen_in_order(start: Start, number: signal.Signals) -> None:
    terminal = Terminal(start("replay", str(RECORDING)))
    terminal.expect(DRAWN)
    terminal.child.kill(number)
    terminal.child.kill(number)  # a scheduler, or a terminal that closes, sends it twice
    terminal.is_given_back()
    assert terminal.said == ""
    assert terminal.child.wait() == 128 + number


def test_a_signal_leaves_the_script_running_and_says_how_to_come_back(start: Start, home: Path) -> None:
    terminal = Terminal(start("--", "sh", "-c", "echo first words; read answer; exit 7"))
    terminal.expect("first words")
    terminal.child.kill(signal.SIGTERM)
    terminal.is_given_back()
    (session,) = own_sessions()
    summary, comeback = terminal.said.splitlines()
    assert re.fullmatch(r"tfmemtop: run 1 of sh -c '.*exit 7': 00:0\d:\d\d, running", summary)
    assert comeback == (
        f"tfmemtop: still running as {session.id}; output in {session.output_path}; "
        f"tfmemtop attach {session.id} brings the screen back"
    )
    assert terminal.child.wait() == 128 + signal.SIGTERM


def test_a_script_that_ends_behind_the_question_is_not_left_running(start: Start) -> None:
    screen = start("--", "sh", "-c", "echo first words; read answer; exit 7")
    screen.expect("first words")
    screen.send("q")
    screen.expect("leave it running")
    (session,) = own_sessions()
    for child in psutil.Process(session.pid).children(recursive=True):
        if child.name() == "sh":
            child.terminate()
    screen.expect("ended")
    screen.send("l")
    code, printed = ended(screen)
    assert (code, "ended by SIGTERM" in printed, "still running as" in printed) == (128 + signal.SIGTERM, True, False)


def test_a_signal_before_the_screen_is_there_says_how_to_come_back_to_what_runs(start: Start, home: Path) -> None:
    """The script starts while the screen is still being loaded."""
    up = home / "up"
    os.mkfifo(up)
    child = start("--", "sh", "-c", f"echo > {up}; read answer")
    up.read_text()
    child.kill(signal.SIGHUP)
    child.expect(r"still running as (\w+); output in")
    assert isinstance(child.match, re.Match)
    assert child.match[1] in {session.id for session in own_sessions()}
    assert ended(child)[0] == 128 + signal.SIGHUP


def test_a_terminal_that_is_closed_ends_the_screen_and_not_the_script(start: Start, home: Path) -> None:
    """This also holds where the signal for it, SIGHUP, is ignored, as under ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        child = start("--", "sh", "-c", f"echo $$ > {home / 'pid'}; echo first words; sleep 300")
    finally:
        signal.signal(signal.SIGHUP, before)
    child.expect("first words")
    pid = child.pid
    assert pid is not None
    os.close(child.child_fd)
    child.child_fd = -1
    child.closed = True
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGHUP
    (session,) = own_sessions()
    script = int((home / "pid").read_text())
    assert psutil.Process(script).status() == psutil.STATUS_SLEEPING and session.pid != script


def spoiled(home: Path, how: str) -> pexpect.spawn[str]:
    """Start a replay in which the key Z runs the code *how*."""
    program = f"""
import sys
from tfmemtop.ui import main
from tfmemtop.ui.app import TfmemtopApp
main.PATIENCE_S = 1
def spoil(app):
    {how}
TfmemtopApp.action_freeze = spoil
from tfmemtop.cli.main import main
sys.exit(main(["replay", {str(RECORDING)!r}]))
"""
    return on_pty(sys.executable, "-c", program)


def test_what_nobody_foresaw_is_one_line_on_a_terminal_given_back(home: Path) -> None:
    terminal = Terminal(spoiled(home, "raise ValueError('no\\x1b]52;c;eA==\\x07 way')"))
    terminal.expect(DRAWN)
    terminal.child.send("Z")
    terminal.is_given_back()
    assert terminal.said == "tfmemtop: the screen has failed: ValueError: no?]52;c;eA==? way"
    assert terminal.child.wait() == 1


def test_a_screen_that_hangs_is_ended_all_the_same(home: Path) -> None:
    terminal = Terminal(spoiled(home, "print('hangs', file=sys.__stdout__, flush=True)\n    while True: pass"))
    terminal.expect(DRAWN)
    terminal.child.send("Z")
    terminal.expect("hangs")
    terminal.child.kill(signal.SIGTERM)
    terminal.is_given_back()
    assert terminal.child.wait() == 128 + signal.SIGTERM


def test_continued_in_the_midst_of_a_write_it_draws_anew(home: Path) -> None:
    """A terminal that is closed sends SIGCONT too. A shell sends it after it has used the terminal itself."""
    how = """
    import os, signal, termios
    modes = termios.tcgetattr(1)
    modes[3] |= termios.ECHO
    with app._driver._writer_thread._queue.mutex:
        termios.tcsetattr(1, termios.TCSANOW, modes)
        os.kill(os.getpid(), signal.SIGCONT)"""
    terminal = Terminal(spoiled(home, how))
    terminal.expect(DRAWN)
    terminal.child.send("Z")
    terminal.expect(re.escape("\x1b[?1049h"))
    terminal.expect(DRAWN)
    terminal.child.send("q")
    terminal.is_given_back()
    assert terminal.child.wait() == 0


OF_THE_DRIVER = """
import ctypes, sys
from pathlib import Path
from tfmemtop.engine.sources.nvml import Nvml
library, read, left = ctypes.CDLL(None), Nvml.read, []
def spoiled(self, t=0.0):
    if Path("now").exists() and not left:
        left.append(True)
        {how}
    return read(self, t)
Nvml.read = spoiled
from tfmemtop.cli.main import main
sys.exit(main([]))
"""


def test_what_a_driver_writes_to_stderr_is_in_the_log_and_not_on_the_screen(home: Path) -> None:
    program = OF_THE_DRIVER.format(how="library.perror(b'of the driver')")
    terminal = Terminal(on_pty(sys.executable, "-c", program, cwd=home))
    terminal.expect(DRAWN)
    (session,) = own_sessions()
    log = Path(session.socket).parent / "engine.log"
    (home / "now").touch()
    until(lambda: "of the driver" in log.read_text())
    terminal.child.send("q")
    terminal.is_given_back()
    assert "of the driver" not in terminal.printed


def test_where_stderr_leads_elsewhere_the_screen_is_on_the_terminal(home: Path) -> None:
    terminal = Terminal(on_pty("sh", "-c", 'exec "$0" 2>errors', PROGRAM, cwd=home))
    terminal.expect(DRAWN)
    terminal.child.send("q")
    terminal.is_given_back()
    assert terminal.child.wait() == 0
    assert (home / "errors").read_text() == ""


def test_where_no_more_threads_may_be_started_the_terminal_is_given_back(home: Path) -> None:
    program = """
import sys, threading
begin = threading.Thread.start
def start(self):
    if self.name == "textual-input":
        raise RuntimeError("can't start new thread")  # as with ulimit -u, or in a container that allows few
    begin(self)
threading.Thread.start = start
from tfmemtop.cli.main import main
sys.exit(main([]))
"""
    terminal = Terminal(on_pty(sys.executable, "-c", program, cwd=home))
    terminal.is_given_back(drawn=False)
    assert "can't start new thread" in terminal.said
    assert terminal.child.wait() == 1
