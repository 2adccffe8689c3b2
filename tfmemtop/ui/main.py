"""The entry points of the screen: for a running engine, for a recording, and for a cluster."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfmemtop.engine.stream.client import connect
from tfmemtop.experiments.session.replay import ReplaySource
from tfmemtop.experiments.session.source import LiveSource, Source
from tfmemtop.failure import no_summary
from tfmemtop.options import ScreenOutcome, UiOptions
from tfmemtop.reports.summary import closing
from tfmemtop.ui import choices
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.choices import Choices
from tfmemtop.ui.leaving import signals_end
from tfmemtop.ui.refusals import not_remembered

if TYPE_CHECKING:
    from tfmemtop.cluster.watch import Asking


def run_live(socket: Path, options: UiOptions) -> ScreenOutcome:
    """Show the screen of the engine that listens at *socket*, until the user leaves.

    Raises:
        OSError: the engine cannot be reached.
    """

    async def source() -> Source:
        return LiveSource(await connect(socket))

    return asyncio.run(_run(source, options))


def run_replay(path: Path, options: UiOptions) -> ScreenOutcome:
    """Show the screen of the recording at *path*, until the user leaves.

    Raises:
        RecordingError: *path* is not a recording, or cannot be read.
    """

    async def source() -> Source:
        return ReplaySource(path)

    return asyncio.run(_run(source, options))


def run_cluster(asking: "Asking", options: UiOptions, *, job: str | None, interval_s: float) -> ScreenOutcome:
    """Show the screen of many machines, from the figures of a Prometheus server, until the user leaves."""
    return asyncio.run(_cluster(asking, options, job, interval_s))


async def _cluster(asking: "Asking", options: UiOptions, job: str | None, interval_s: float) -> ScreenOutcome:
    from tfmemtop.cluster.watch import ClusterWatch
    from tfmemtop.ui.cluster_app import ClusterApp

    _forget_size()
    app = ClusterApp(ClusterWatch(asking, interval_s), options, job=job)
    with signals_end(app):
        outcome = await app.run_async()
    return outcome or ScreenOutcome(app.return_code or 0, trouble=app.trouble)


def _keep(now: Choices, before: Choices, path: Path | None) -> Iterator[str]:
    """Save the user's choices for the next screen, if they have changed. Yield a line for the user if that fails."""
    if now != before and path is not None:
        try:
            choices.save(now, path)
        except OSError as error:
            yield not_remembered(error)


def _summary(source: Source) -> tuple[str, ...]:
    """Return the lines that are printed after the screen; none for a replay."""
    if not source.live:
        return ()
    try:
        return tuple(closing(source.state))
    except Exception as error:  # the exit code matters more than the summary
        return (no_summary(error),)


def _forget_size() -> None:
    """Remove ``COLUMNS`` and ``LINES`` from the environment.

    If a shell exports them, they contain the size at the shell's start. Textual would use that, and not the
    terminal's own size.
    """
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)


async def _run(make_source: Callable[[], Awaitable[Source]], options: UiOptions) -> ScreenOutcome:
    _forget_size()
    source = await make_source()
    try:
        before = choices.load(options.choices)
        app = TfmemtopApp(source, options, before)
        with signals_end(app):
            outcome = await app.run_async()
        outcome = outcome or ScreenOutcome(
            app.return_code or 0, left_running=app.session.script_goes_on, trouble=app.trouble
        )
        return replace(outcome, summary=(*_summary(source), *_keep(app.choices, before, options.choices)))
    finally:
        await source.close()
