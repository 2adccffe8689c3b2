"""One frame of the real app: 16 GPUs, 500 processes, 200×60; fresh, and after a day.

A frame is what happens when new readings are drawn, from ``redraw`` to the bytes for the terminal:
building every panel, finding the lines that changed, Textual's compositor, escape sequences. It
is counted as CPU time of the thread, so that a busy machine does not add to it.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator

from rich.console import RenderableType
from textual._compositor import CompositorUpdate
from textual.screen import Screen

from tests.bench.machine import Machine
from tests.bench.table import Row, spread
from tfmemtop.events import AnyCommand, AnyEvent
from tfmemtop.options import UiOptions
from tfmemtop.state import apply
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.lines import Panel
from tfmemtop.ui.source import Batch

BOUND_MS = 15.0
GPUS, PROCESSES, SIZE = 16, 500, (200, 60)
DAY_S = 86_400
_QUIET_S = 0.06
"""More than three of the sixtieths of a second after which Textual draws what has changed."""


class Feed:
    """A source that gives what is put into it."""

    live = True

    def __init__(self) -> None:
        self.queue: asyncio.Queue[list[AnyEvent]] = asyncio.Queue()

    async def batches(self) -> AsyncIterator[Batch]:
        while True:
            yield await self.queue.get()

    async def send(self, command: AnyCommand) -> None:
        """Nobody obeys."""

    async def close(self) -> None:
        """There is nothing to let go of."""


class DrawingApp(TfmemtopApp):
    """The app, drawing whole escape sequences although it has no terminal."""

    drawn = 0

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if isinstance(renderable, CompositorUpdate):
            self.drawn += len(renderable.render_segments(self.console))


async def _frame_ms(app: DrawingApp) -> float:
    before = app.drawn
    begun = time.thread_time()
    app.redraw()
    await asyncio.sleep(_QUIET_S)
    taken = time.thread_time() - begun
    if app.drawn == before:
        raise RuntimeError("a frame in which nothing was drawn")
    return taken * 1e3


async def _frames(app: DrawingApp, machine: Machine, t: float, count: int) -> tuple[list[float], dict[str, float]]:
    """Milliseconds of each frame, a second of readings apart; and each panel's median share in building."""
    frames, shares = [], {}
    for second in range(1, count + 1):
        for event in (*machine.allocators(t + second), *machine.readings(t + second)):
            apply(app.state, event)
        frames.append(await _frame_ms(app))
    for panel in app.query(Panel):
        if panel.display:
            times = []
            for second in range(1, 6):
                for event in (*machine.allocators(t + count + second), *machine.readings(t + count + second)):
                    apply(app.state, event)
                begun = time.thread_time()
                panel.show(app.state)
                times.append((time.thread_time() - begun) * 1e3)
            t += 5
            shares[panel.id or type(panel).__name__.lower()] = statistics.median(times)
    return frames, shares


def _live(app: DrawingApp, machine: Machine, begin: int, end: int, step: int) -> None:
    """Fold the time from *begin* to *end*, a reading every *step* seconds; four a second in the last minutes."""
    for second in range(begin, end, step):
        for event in (*machine.allocators(second), *machine.readings(second)):
            apply(app.state, event)
        if end - second <= 600:
            for quarter in range(4 * step):
                for reading in machine.allocators(second + quarter / 4):
                    apply(app.state, reading)


async def _measure(count: int, step: int) -> list[Row]:
    machine, feed = Machine(GPUS, PROCESSES), Feed()
    app = DrawingApp(feed, UiOptions())
    async with app.run_test(size=SIZE) as pilot:
        await feed.queue.put([*machine.beginning(), *machine.allocators(1.0), *machine.readings(1.0)])
        while len(app.state.processes) < PROCESSES:
            await pilot.pause()
        app.frozen = True  # frames are drawn here only, not at the app's own pace
        app.redraw()
        await asyncio.sleep(10 * _QUIET_S)
        rows = []
        for age, begin, end in (("fresh", 1, 60), ("after 24 h", 61 + count, DAY_S)):
            _live(app, machine, begin, end, 1 if age == "fresh" else step)
            frames, shares = await _frames(app, machine, float(end), count)
            dearest = sorted(shares.items(), key=lambda share: -share[1])[:3]
            rows.append(
                Row(
                    f"one frame, {GPUS} GPUs, {PROCESSES} processes, {SIZE[0]}×{SIZE[1]}, {age}",
                    f"{BOUND_MS:.0f} ms",
                    f"{spread(frames, 1)} ms",
                    f"{count} frames of the app, all readings changed, CPU time to the terminal's bytes; of which "
                    + ", ".join(f"{name} {taken:.1f}" for name, taken in dearest),
                    statistics.median(frames) <= BOUND_MS,
                )
            )
    return rows


def measure(quick: bool) -> list[Row]:
    """A fresh session, then the same after a day."""
    return asyncio.run(_measure(20 if quick else 60, 32 if quick else 8))
