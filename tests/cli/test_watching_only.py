"""A session that only watches is one process: its engine runs in the screen's process, and ends with the screen."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pexpect
import pytest

from tests.engines import Screen
from tests.own_sessions import own_sessions
from tests.starting import Start, ended, on_pty
from tfmemtop.engine.sources.processes import all_pids, carries
from tfmemtop.engine.stream.folders import SessionInfo
from tfmemtop.engine.stream.server import connect
from tfmemtop.events import Notice, NoticeKind, Relaunch
from tfmemtop.settings import Settings

DRAWN = "Processes"


def the_session() -> SessionInfo:
    (session,) = own_sessions()
    return session


def folder_of(session: SessionInfo) -> Path:
    return Path(session.socket).parent


def ours() -> set[int]:
    """Return the processes whose sessions are in this test's folder."""
    mark = f"XDG_RUNTIME_DIR={os.environ['XDG_RUNTIME_DIR']}".encode()
    return {pid for pid in all_pids() if pid != os.getpid() and carries(pid, mark)}


def test_it_is_one_process(start: Start) -> None:
    child = start()
    child.expect(DRAWN)
    session = the_session()
    assert session.pid == child.pid
    assert ours() == {child.pid}
    child.send("q")
    assert ended(child)[0] == 0
    assert not folder_of(session).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_who_ends_it_ends_its_session(start: Start, number: signal.Signals) -> None:
    child = start()
    child.expect(DRAWN)
    session = the_session()
    child.kill(number)
    _, said = ended(child)
    assert "still running" not in said and "Traceback" not in said
    assert number is signal.SIGKILL or (child.exitstatus == 128 + number and not folder_of(session).exists())
    assert own_sessions() == []
    assert not folder_of(session).exists()


def test_another_screen_that_is_left_does_not_end_the_first(start: Start) -> None:
    first = start()
    first.expect(DRAWN)
    other = start("attach", the_session().id)
    other.expect(DRAWN)
    other.send("q")
    code, said = ended(other)
    assert code == 0 and "engine" not in said
    again = start("attach", the_session().id)
    again.expect(DRAWN)
    first.send("q")
    code, said = ended(first)
    assert code == 0 and "engine has ended" not in said
    again.expect("engine has ended")
    again.send("q")
    assert ended(again)[0] == 0


def spoiled(home: Path, how: str) -> pexpect.spawn[str]:
    """Start a screen that only watches, after the code *how* has spoiled a part of its engine."""
    program = f"import ctypes, sys, time\n{how}\nfrom tfmemtop.cli.main import main\nsys.exit(main([]))"
    return on_pty(sys.executable, "-c", program, cwd=home)


HANGS = """
from tfmemtop.engine.sources.nvml import Nvml
def hang(*_):
    while True:
        ctypes.CDLL(None).pause()
Nvml.read = hang
"""


def test_a_driver_that_hangs_holds_up_neither_the_keys_nor_the_end(home: Path) -> None:
    child = spoiled(home, HANGS)
    child.expect(DRAWN)
    child.send("Z")
    child.expect("FROZEN")
    session = the_session()
    child.send("q")
    assert ended(child)[0] == 0
    assert not folder_of(session).exists()


FAILS = """
from tfmemtop.engine.sources.host import Host
def fail(*_):
    raise ValueError("unforeseen")
Host.sweep = fail
"""


def test_what_fails_in_the_engine_is_written_to_its_log_and_not_onto_the_screen(home: Path) -> None:
    child = spoiled(home, FAILS)
    child.expect("ValueError: unforeseen")  # the notice
    log = (folder_of(the_session()) / "engine.log").read_text()
    assert "Traceback" in log and log.rstrip().endswith("ValueError: unforeseen")
    child.send("q")
    code, said = ended(child)
    assert (code, "Traceback" in said) == (0, False)


async def test_no_command_is_started_in_the_screens_process(start: Start, home: Path) -> None:
    child = start()
    child.expect(DRAWN)
    screen = Screen(await connect(Path(the_session().socket)))
    await screen.client.send(Relaunch(argv=["touch", str(home / "started")], settings=Settings()))
    await screen.until(Notice, lambda notice: notice.kind is NoticeKind.NOT_RELAUNCHED)
    await screen.client.close()
    child.send("q")
    assert ended(child)[0] == 0
    assert not (home / "started").exists()
