"""One frame of the real app, 200×60: 16 GPUs and 500 processes, fresh and after a day; 64 GPUs and 2000 processes.

A frame is what happens when new readings are drawn, from ``redraw`` to the bytes for the terminal: building every
panel, finding the lines that changed, Textual's compositor, escape sequences. It is counted as CPU time of the thread,
so that a busy machine does not add to it. It is compared with the time in which Textual repaints as many plain cells.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence

from tests.tools.bench.machine import Machine
from tests.tools.bench.table import Row
from tests.tools.bench.yardstick import QUIET_S, Drawing, against, repainted_ms
from tests.ui.shown import Recorded
from tfmemtop.state import apply
from tfmemtop.ui import UiOptions
from tfmemtop.ui.app import TfmemtopApp

BOUND, BOUND_LARGE = 4.0, 8.0
"""As multiples of a repaint of as many plain cells."""
GPUS, PROCESSES, SIZE = 16, 500, (200, 60)
GPUS_LARGE, PROCESSES_LARGE = 64, 2000
DAY_S = 86_400


_FRESH = "fresh"


class DrawingApp(Drawing, TfmemtopApp):
    """The app, drawn in full."""


async def _frame_ms(app: DrawingApp) -> float:
    before = app.drawn
    begun = time.thread_time()
    app.redraw()
    await asyncio.sleep(QUIET_S)
    taken = time.thread_time() - begun
    if app.drawn == before:
        raise RuntimeError("a frame in which nothing was drawn")
    return taken * 1e3


async def _frames(app: DrawingApp, machine: Machine, t: float, count: int) -> list[float]:
    """Return the milliseconds of *count* frames. From one to the next there are new readings of a second."""
    frames = []
    for second in range(1, count + 1):
        for event in (*machine.allocators(t + second), *machine.readings(t + second)):
            apply(app.state, event)
        frames.append(await _frame_ms(app))
    return frames


def _live(app: DrawingApp, machine: Machine, begin: int, end: int, step: int) -> None:
    """Fold the time from *begin* to *end*, a reading every *step* seconds; four a second in the last ten minutes."""
    for second in range(begin, end, step):
        for event in (*machine.allocators(second), *machine.readings(second)):
            apply(app.state, event)
        if end - second <= 600:
            for quarter in range(4 * step):
                for reading in machine.allocators(second + quarter / 4):
                    apply(app.state, reading)


async def _measure(gpus: int, processes: int, ages: Sequence[str], bound: float, count: int, step: int) -> list[Row]:
    plain_ms = await repainted_ms(SIZE)
    machine = Machine(gpus, processes)
    stream = [*machine.beginning(), *machine.allocators(1.0), *machine.readings(1.0)]
    app = DrawingApp(Recorded(stream), UiOptions())
    async with app.run_test(size=SIZE) as pilot:
        while len(app.state.processes) < processes:
            await pilot.pause()
        app.session.frozen = True  # frames are drawn only here, not by the app itself
        app.redraw()
        await asyncio.sleep(10 * QUIET_S)
        rows = []
        begin = 1
        for age in ages:
            end = 60 if age == _FRESH else DAY_S
            _live(app, machine, begin, end, 1 if age == _FRESH else step)
            frames = await _frames(app, machine, float(end), count)
            begin = end + 1 + count
            rows.append(
                Row(
                    f"one frame, {gpus} GPUs, {processes} processes, {SIZE[0]}×{SIZE[1]}, {age}",
                    f"{bound:g}× a repaint",
                    against(frames, plain_ms, 1, "ms", f"Textual repainting {SIZE[0]}×{SIZE[1]} plain cells"),
                    f"{count} frames of the app, all readings changed, CPU time to the terminal's bytes",
                    statistics.median(frames) <= bound * plain_ms,
                )
            )
    return rows


def measure(quick: bool) -> list[Row]:
    """Measure a fresh session, the same session after a day, and a large machine."""
    count, step = (20, 32) if quick else (60, 8)
    return [
        *asyncio.run(_measure(GPUS, PROCESSES, (_FRESH, "after 24 h"), BOUND, count, step)),
        *asyncio.run(_measure(GPUS_LARGE, PROCESSES_LARGE, (_FRESH,), BOUND_LARGE, count, step)),
    ]
