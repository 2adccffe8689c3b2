"""The entry points of the screen: for a running engine, for a recording, and for a cluster."""

import asyncio
import atexit
import os
import select
import signal
import sys
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tfmemtop.engine.stream.server import connect
from tfmemtop.exit_codes import SIGNALLED
from tfmemtop.experiments.session import LiveSource, Source
from tfmemtop.experiments.session.replay import ReplaySource
from tfmemtop.failure import no_summary
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.screen_app import ScreenApp
from tfmemtop.ui.screens.main_screen import Choices, load_choices, save_choices

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)

_LOOK_S = 1.0  # between two checks whether the terminal is still open

PATIENCE_S = 10
"""Seconds that the app has to end in order. After that it is ended: it hangs, or its terminal takes no output."""


@contextmanager
def signals_end(app: ScreenApp) -> Iterator[None]:
    """Within this context, end *app* in order on any signal that ends programs.

    A signal that was ignored before, as under nohup, stays ignored. The context needs a running event loop and the
    main thread.
    """
    loop = asyncio.get_running_loop()
    heeded = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    heard: list[int] = []

    # Set by ``signal.signal``, not by the event loop: the last resort must work even if the loop hangs.
    def end(number: int, _: FrameType | None) -> None:
        if not heard:
            heard.append(number)
            signal.alarm(PATIENCE_S)
            loop.call_soon_threadsafe(app.end_for, number)

    def last_resort(*_: object) -> None:
        app.give_terminal_back()
        os._exit(SIGNALLED + heard[0] if heard else 1)

    # Under nohup a closed terminal sends no signal, and Textual would read the end of its input again and again.
    terminal = select.poll()
    terminal.register(sys.__stdin__.fileno() if sys.__stdin__ else 0, 0)

    looking: asyncio.TimerHandle

    def look() -> None:
        nonlocal looking
        if not heard and terminal.poll(0):
            end(signal.SIGHUP, None)
        looking = loop.call_later(_LOOK_S, look)

    looking = loop.call_later(_LOOK_S, look)
    before = {number: signal.signal(number, end) for number in heeded}
    alarm = signal.signal(signal.SIGALRM, last_resort)
    try:
        yield
    finally:
        looking.cancel()
        for number, handler in before.items():
            # A scheduler, or a terminal that closes, may send a second signal. It must not end this process before its
            # last lines are printed.
            signal.signal(number, signal.SIG_IGN if heard else handler)
        if heard:
            # The last resort stays active until Python has waited for all threads. After that its handler is gone, and
            # the alarm itself would kill this process: so the alarm is cancelled at exit.
            atexit.register(signal.alarm, 0)
        else:
            signal.signal(signal.SIGALRM, alarm)
        sys.stdout.flush()


if TYPE_CHECKING:
    from tfmemtop.cluster.watch import Asking


def run_live(socket: Path, options: UiOptions) -> ScreenOutcome:
    """Show the screen of the engine that listens at *socket*, until the user leaves.

    Raises:
        OSError: the engine cannot be reached.
    """
    return asyncio.run(_run(_live(socket), options))


async def _live(socket: Path) -> Source:
    return LiveSource(await connect(socket))


def run_replay(path: Path, options: UiOptions) -> ScreenOutcome:
    """Show the screen of the recording at *path*, until the user leaves.

    Raises:
        RecordingError: *path* is not a recording, or cannot be read.
    """
    return asyncio.run(_run(_replay(path), options))


async def _replay(path: Path) -> Source:
    return ReplaySource(path)


def run_cluster(asking: "Asking", options: UiOptions, *, job: str | None, interval_s: float) -> ScreenOutcome:
    """Show the screen of many machines, from the figures of a Prometheus server, until the user leaves."""
    return asyncio.run(_cluster(asking, options, job, interval_s))


async def _cluster(asking: "Asking", options: UiOptions, job: str | None, interval_s: float) -> ScreenOutcome:
    from tfmemtop.cluster.watch import ClusterWatch
    from tfmemtop.ui.cluster_app import ClusterApp

    _forget_size()
    app = ClusterApp(ClusterWatch(asking, interval_s), options, job=job)
    return await _shown(app)


async def _shown(app: ScreenApp) -> ScreenOutcome:
    with signals_end(app):
        outcome = await app.run_async()
    return outcome or ScreenOutcome(app.return_code or 0, left_running=app.script_goes_on, trouble=app.trouble)


def _keep(now: Choices, before: Choices, path: Path | None) -> Iterator[str]:
    """Save the user's choices for the next screen, if they have changed. Yield a line for the user if that fails."""
    if now != before and path is not None:
        try:
            save_choices(now, path)
        except OSError as error:
            yield f"what you chose on the screen is not remembered: {error.strerror or error}"


def _summary(source: Source) -> tuple[str, ...]:
    """Return the lines that are printed after the screen; none for a replay."""
    if not source.live:
        return ()
    from tfmemtop.reports.summary import closing  # only here: to load it would delay the first picture

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


async def _run(made: Awaitable[Source], options: UiOptions) -> ScreenOutcome:
    _forget_size()
    source = await made
    try:
        before = load_choices(options.choices)
        app = TfmemtopApp(source, options, before)
        outcome = await _shown(app)
        return replace(outcome, summary=(*_summary(source), *_keep(app.choices, before, options.choices)))
    finally:
        await source.close()
