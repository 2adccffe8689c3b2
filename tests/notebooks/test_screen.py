"""The screen of a kernel: choices apply from its next restart on."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pexpect

from tests.notebook import Notebook
from tests.patience import PATIENCE_S, until
from tests.starting import PROGRAM, on_pty
from tests.ui.shown import text_of
from tfmemtop.cli.live import successor
from tfmemtop.engine.stream.folders import SessionInfo, sessions
from tfmemtop.engine.stream.server import connect
from tfmemtop.experiments.session import LiveSource
from tfmemtop.ui import UiOptions
from tfmemtop.ui.app import TfmemtopApp


async def _until(pilot: Any, look: Callable[[], Any]) -> Any:
    """Call *look* until its result is true. Return this result."""
    ends = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < ends, text_of(pilot.app)
        await pilot.pause(0.1)
    return found


async def _shown(pilot: Any, text: str) -> str:
    """Wait until *text* is on the screen. Return all of its text, with blanks in place of line breaks."""

    def look() -> str:
        told = " ".join(text_of(pilot.app).replace("│", " ").split())
        return told if text in told else ""

    told: str = await _until(pilot, look)
    return told


async def _screen(session: SessionInfo) -> TfmemtopApp:
    return TfmemtopApp(LiveSource(await connect(session.socket)), UiOptions(successor=successor))


def test_a_screen_in_a_terminal_goes_on_with_the_kernel_that_was_restarted(jupyter: Path) -> None:
    notebook = Notebook()
    try:
        first = notebook.session()
        terminal = on_pty(PROGRAM, "attach", first.id, env=os.environ | {"TERM": "xterm-256color"})
        terminal.expect("ipykernel_launcher")
        notebook.restart()
        second = notebook.session()

        def gone() -> bool:
            with suppress(pexpect.TIMEOUT):  # read what is drawn: the screen would wait at a full terminal
                terminal.read_nonblocking(1 << 16, 0)
            return all(each.id != first.id for each in sessions())

        until(gone)  # the engine of the first session stays while a screen shows it
        terminal.send("q")
        terminal.expect(f"still running as {second.id}")
        terminal.expect(pexpect.EOF)
        assert notebook.run("print(6 * 7)") == "42\n"
    finally:
        notebook.end(now=True)
