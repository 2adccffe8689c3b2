"""The screen's entries: onto a living engine, and onto a recording."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tfmemtop.engine.client import connect
from tfmemtop.options import Outcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp
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
    source = await make_source()
    try:
        app = TfmemtopApp(source, options)
        outcome = await app.run_async()
        return outcome or Outcome(app.return_code or 0, left_running=True)
    finally:
        await source.close()
