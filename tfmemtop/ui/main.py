"""The screen's entries: onto a living engine, and onto a recording."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from tfmemtop.engine.client import connect
from tfmemtop.options import Outcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.leaving import signals_end
from tfmemtop.ui.source import LiveSource, ReplaySource, Source


def run_live(socket: Path, options: UiOptions) -> Outcome:
    """The screen on the engine that listens at *socket*, until the user leaves.

    Raises:
        OSError: the engine cannot be reached.
    """

    async def source() -> Source:
        return LiveSource(await connect(socket))

    return asyncio.run(_run(source, options))


def run_replay(path: Path, options: UiOptions) -> Outcome:
    """The screen on a recording.

    Raises:
        RecordingError: *path* is no recording that can be read.
    """

    async def source() -> Source:
        return ReplaySource(path)

    return asyncio.run(_run(source, options))


async def _run(make_source: Callable[[], Awaitable[Source]], options: UiOptions) -> Outcome:
    # Where a shell has exported them they are those of its start; Textual would not follow the terminal's own size.
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    source = await make_source()
    try:
        app = TfmemtopApp(source, options)
        with signals_end(app):
            outcome = await app.run_async()
        return outcome or Outcome(app.return_code or 0, left_running=app.script_goes_on, trouble=app.trouble)
    finally:
        await source.close()
