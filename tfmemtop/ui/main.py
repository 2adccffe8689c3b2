"""The screen's entries: onto a living engine, and onto a recording."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfmemtop.engine.stream.client import connect
from tfmemtop.options import Outcome, UiOptions
from tfmemtop.reports.summary import closing
from tfmemtop.session.replay import ReplaySource
from tfmemtop.session.source import LiveSource, Source
from tfmemtop.ui import choices
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.choices import Choices
from tfmemtop.ui.leaving import signals_end
from tfmemtop.words.failure import no_summary
from tfmemtop.words.refusals import not_remembered

if TYPE_CHECKING:
    from tfmemtop.cluster.watch import Asking

_GATHER_S = 0.3
"""How long a screen waits for figures: it would be drawn empty otherwise, over the first picture."""


def run_live(socket: Path, options: UiOptions) -> Outcome:
    """The screen on the engine that listens at *socket*, until the user leaves.

    Raises:
        OSError: the engine cannot be reached.
    """

    async def source() -> Source:
        live = LiveSource(await connect(socket))
        await live.gather(_GATHER_S)
        return live

    return asyncio.run(_run(source, options))


def run_replay(path: Path, options: UiOptions) -> Outcome:
    """The screen on a recording.

    Raises:
        RecordingError: *path* is no recording that can be read.
    """

    async def source() -> Source:
        return ReplaySource(path)

    return asyncio.run(_run(source, options))


def run_cluster(asking: "Asking", options: UiOptions, *, job: str | None, interval_s: float) -> Outcome:
    """The screen of many machines, on what a Prometheus server has, until the user leaves."""
    return asyncio.run(_cluster(asking, options, job, interval_s))


async def _cluster(asking: "Asking", options: UiOptions, job: str | None, interval_s: float) -> Outcome:
    from tfmemtop.cluster.watch import Watch
    from tfmemtop.ui.cluster_app import ClusterApp

    _forget_size()
    watch = Watch(asking, interval_s)
    app = ClusterApp(watch, options, job=job)
    try:
        with signals_end(app):
            outcome = await app.run_async()
    finally:
        watch.close()
    return outcome or Outcome(app.return_code or 0, trouble=app.trouble)


def _keep(now: Choices, before: Choices, path: Path | None) -> Iterator[str]:
    """Keep what was chosen for the next screen, where that is something else; say so if it cannot be kept."""
    if now != before and path is not None:
        try:
            choices.save(now, path)
        except OSError as error:
            yield not_remembered(error)


def _summary(source: Source) -> tuple[str, ...]:
    """What is said once the screen is gone; nothing of a replay."""
    if not source.live:
        return ()
    try:
        return tuple(closing(source.state))
    except Exception as error:  # the exit code counts more
        return (no_summary(error),)


def _forget_size() -> None:
    """Where a shell has exported it, it is that of its start; Textual would not follow the terminal's own."""
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)


async def _run(make_source: Callable[[], Awaitable[Source]], options: UiOptions) -> Outcome:
    _forget_size()
    source = await make_source()
    try:
        before = choices.load(options.choices)
        app = TfmemtopApp(source, options, before)
        with signals_end(app):
            outcome = await app.run_async()
        outcome = outcome or Outcome(app.return_code or 0, left_running=app.session.script_goes_on, trouble=app.trouble)
        return replace(outcome, summary=(*_summary(source), *_keep(app.choices, before, options.choices)))
    finally:
        await source.close()
