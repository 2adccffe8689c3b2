"""The terminal receives a bell and a notification when a run has ended, for a user who looks elsewhere."""

import os
from pathlib import Path

import pexpect
import pytest

from tests.starting import Start

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
    screen.expect("exit code 3.*exit code 3|exit.*3")
    seen += (screen.before or "") + str(screen.after)
    screen.send("q")
    screen.expect(pexpect.EOF)
    return seen + (screen.before or "")


def test_the_bell_and_a_notification_tell_of_the_end(start: Start, gate: Path) -> None:
    written = until_end(start, gate)
    assert written.count("\a\x1b]9;tfmemtop: run 1 ended with exit code 3 after 00:00:0") == 1


def test_a_terminal_that_knows_only_the_other_sequence_gets_that(start: Start, gate: Path) -> None:
    written = until_end(start, gate, VTE_VERSION="7600")
    assert "\a\x1b]777;notify;tfmemtop;run 1 ended with exit code 3" in written and "\x1b]9;" not in written


def test_who_wants_none_gets_none(start: Start, gate: Path) -> None:
    written = until_end(start, gate, "--no-notify")
    assert "\x1b]9;" not in written
