"""The first picture on a real terminal: it is there before Textual, and it spoils neither the terminal nor the keys."""

from __future__ import annotations

import os
import re
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pexpect
import pytest

from tests.own_sessions import own_sessions
from tests.patience import PATIENCE_S, end
from tfmemtop.ui import choices

SCRIPT = Path(__file__).parents[1] / "scripts" / "first_picture.py"
FIGURES = r"2\.8 of 140\.4 GiB"
LAST_KEY = "quit"
MODES = re.compile(r"\x1b\[\?(\d+)([hl])")

Picture = Callable[..., "pexpect.spawn[str]"]


@pytest.fixture
def picture(home: Path) -> Iterator[Picture]:
    """A function that starts tfmemtop on a pty. There, the import of Textual waits for the file ``textual``."""
    started: list[pexpect.spawn[str]] = []

    def begin(*arguments: str, first: Callable[[], None] | None = None, **environment: str) -> pexpect.spawn[str]:
        child = pexpect.spawn(
            sys.executable,
            ["-I", "-S", str(SCRIPT), *arguments],
            dimensions=(24, 80),
            env={**os.environ, "XDG_CONFIG_HOME": str(home), "SCREEN_MAY_BEGIN": str(home / "textual")} | environment,
            encoding="utf-8",
            timeout=PATIENCE_S,
            preexec_fn=first,
        )
        started.append(child)
        return child

    yield begin
    for child in started:
        if child.child_fd >= 0:
            end(child)


def held(child: pexpect.spawn[str]) -> list[object]:
    """Wait for the whole picture, while Textual still waits. Return the terminal's modes from before the picture.

    These are the modes of every new terminal. The child may have changed those of its own by now.
    """
    child.expect(FIGURES)
    child.expect(LAST_KEY)
    ours, theirs = os.openpty()
    before = termios.tcgetattr(ours)
    os.close(ours)
    os.close(theirs)
    return before


def block(number: signal.Signals) -> None:
    """Block the signal. The child calls this before its program starts."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])


def ignore(number: signal.Signals) -> None:
    """Ignore the signal. The child calls this before its program starts."""
    signal.signal(number, signal.SIG_IGN)


def is_given_back(child: pexpect.spawn[str], before: list[object], printed: str) -> None:
    """Check that the terminal is as *before*. The modes left on are at most line wrapping (7) and the cursor (25)."""
    on = dict(MODES.findall(printed))  # the last switch of each counts
    assert {mode for mode, switch in on.items() if switch == "h"} <= {"7", "25"}
    assert on["25"] == "h", "the cursor is shown"
    assert termios.tcgetattr(child.child_fd) == before


def test_the_figures_are_there_before_textual_and_the_screen_takes_over_without_clearing(
    picture: Picture, home: Path
) -> None:
    child = picture()
    before = held(child)
    printed = f"{child.before}{child.after}"
    (home / "textual").touch()
    child.expect(r"\[\?1003h")  # the mouse mode, which only the screen turns on
    printed += f"{child.before}{child.after}"
    assert printed.count("\x1b[?1049h") <= 1, "entered twice, the alternate screen would be cleared"
    child.expect("every process on the GPUs")
    child.send("q")
    child.expect(pexpect.EOF)
    is_given_back(child, before, f"{printed}{child.before}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_who_ends_it_meanwhile_finds_the_terminal_as_it_was(picture: Picture, number: signal.Signals) -> None:
    child = picture()
    before = held(child)
    until = time.monotonic() + PATIENCE_S
    while not own_sessions() and time.monotonic() < until:
        time.sleep(0.01)
    if number is signal.SIGINT:
        child.send("\x03")
    else:
        child.kill(number)
    child.expect(pexpect.EOF)
    printed = child.before or ""
    assert "\x1b[?1049l" in printed
    is_given_back(child, before, printed)
    assert "Traceback" not in printed
    assert not Path(os.environ["XDG_RUNTIME_DIR"], "tfmemtop").exists(), "the session has gone too"


def test_a_key_that_is_typed_meanwhile_is_the_screens(picture: Picture, home: Path) -> None:
    child = picture()
    held(child)
    child.send("q")
    (home / "textual").touch()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_a_driver_that_hangs_holds_up_nothing(picture: Picture, home: Path) -> None:
    (home / "textual").touch()
    child = picture(DRIVER_HANGS="1")
    child.expect(r"every process on the GPUs")
    child.send("q")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_a_driver_that_cannot_be_interrupted_costs_nothing_of_what_the_terminal_shows(
    picture: Picture, home: Path
) -> None:
    (home / "textual").touch()
    child = picture(DRIVER_HANGS="1", first=partial(block, signal.SIGTERM))
    child.expect(r"\[\?1003h")
    assert "\x1b[?1049h" in (child.before or ""), "else the screen is drawn over what the user had on the terminal"


def test_a_second_signal_finds_the_terminal_as_it_was_too(picture: Picture) -> None:
    child = picture(PAINTER_STAYS="1")
    before = held(child)
    child.kill(signal.SIGINT)
    painter = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()[0]
    while not pending(painter) & 1 << signal.SIGTERM - 1:  # until the first signal is being handled
        assert child.isalive()
    child.kill(signal.SIGINT)
    child.expect(pexpect.EOF)
    is_given_back(child, before, child.before or "")


def pending(pid: str) -> int:
    """Return the signals that are pending for the process *pid*, as a mask."""
    status = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["ShdPnd"], 16)


def test_a_library_that_crashes_meanwhile_leaves_the_terminal_as_it_was(picture: Picture, home: Path) -> None:
    child = picture(LIBRARY_CRASHES="1")
    before = held(child)
    (home / "textual").touch()
    child.expect(pexpect.EOF)
    printed = child.before or ""
    is_given_back(child, before, printed)
    assert "tfmemtop: ended by SIGABRT: a library crashed" in printed


def test_where_the_end_of_a_child_is_not_told_the_screen_comes_without_a_picture(picture: Picture, home: Path) -> None:
    (home / "textual").touch()
    child = picture(first=partial(ignore, signal.SIGCHLD))
    child.expect(r"\[\?1003h")  # the mouse mode, which only the screen turns on
    assert not re.search(FIGURES, child.before or "")
    child.send("q")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


@pytest.mark.parametrize("otherwise", ["option", "file of options", "another scale", "characters"])
def test_where_the_screen_will_look_otherwise_there_is_none(picture: Picture, home: Path, otherwise: str) -> None:
    if otherwise == "file of options":
        (home / "tfmemtop").mkdir()
        (home / "tfmemtop" / "config.toml").write_text("readonly = true\n")
    if otherwise == "another scale":
        (home / "state" / "tfmemtop").mkdir(parents=True)
        choices.save(choices.Choices(scale="whole"), home / "state" / "tfmemtop" / "choices.json")
    (home / "textual").touch()
    # With these variables Python itself sets LC_CTYPE to C.UTF-8. The screen still uses ASCII only.
    plain = {"LC_ALL": "", "LC_CTYPE": "", "LANG": "C"} if otherwise == "characters" else {}
    child = picture(*(["--readonly"] if otherwise == "option" else []), **plain)
    child.expect(r"\[\?1003h")  # the mouse mode, which only the screen turns on
    assert not re.search(FIGURES, child.before or "")
