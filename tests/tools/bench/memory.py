"""Whether memory grows while tfmemtop watches: simulated days of events, folded as screen and engine fold them.

There is one script with an allocator read ten times a second, one GPU and a few processes read once a second, a line
of output a second, and every ten minutes a child that uses TensorFlow and ends. Screen and engine are measured in
processes of their own, so that each one's resident memory is its own.
"""

import asyncio
import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import psutil

from tests.tools.bench.frame import DrawingApp, Feed
from tests.tools.bench.machine import SCRIPT, Machine
from tests.tools.bench.table import Row
from tfmemtop import events
from tfmemtop.engine.stream.backlog import Backlog
from tfmemtop.experiments.session.source import LiveSource
from tfmemtop.options import UiOptions
from tfmemtop.state import State, apply

HOUR_S, DAY_S = 3600, 86_400
LONG_DAYS, LONG_STEP = 30, 300
BOUND_SHARE = 0.06
"""As a share of the memory held after an hour."""
CHILD_EVERY_S, CHILD_LIVES_S = 600, 60
PROCESSES = 5
SIZE = (160, 48)

_DRAWN_S = 0.02  # Textual draws what has changed at the next sixtieth of a second

HeldAndGrown = tuple[float, float]
"""MB held after the first simulated hour, and the MB by which this has grown at the end."""


def _second(machine: Machine, second: int) -> Iterator[events.Event]:
    number, age = divmod(second, CHILD_EVERY_S)
    child = 100_000 + number
    if age == 0:
        machine.pids.append(child)
        machine.hooked.append(child)
        yield events.Process(
            t=second, pid=child, ppid=SCRIPT, user="ada", command=["python", "evaluate.py"], started=1.7e9 + second,
            run=1,
        )  # fmt: skip
        yield from machine.greeting(second, child, 0)
    elif age >= CHILD_LIVES_S and child in machine.pids:
        machine.pids.remove(child)
        machine.hooked.remove(child)
        yield events.HookEnd(t=second, pid=child, reason=events.HookEnding.EXIT)
    for tenth in range(10):
        yield from machine.allocators(second + tenth / 10)
    yield from machine.readings(second + 0.95)
    yield machine.printing(second + 0.97)


def _resident_mb() -> float:
    gc.collect()
    return float(psutil.Process().memory_info().rss) / 1e6


def _seconds(step: int, days: int) -> Iterator[int]:
    """Yield every second of the first hour, which fills what is bounded; then every *step*-th second."""
    yield from range(HOUR_S)
    yield from range(HOUR_S, days * DAY_S, step)


def _fold(take: Callable[[events.Event], None], step: int, days: int) -> HeldAndGrown:
    machine = Machine(1, PROCESSES)
    for event in machine.beginning():
        take(event)
    after_an_hour = 0.0
    for second in _seconds(step, days):
        for event in _second(machine, second):
            take(event)
        if second == HOUR_S:
            after_an_hour = _resident_mb()
    return after_an_hour, _resident_mb() - after_an_hour


def state(step: int, days: int) -> HeldAndGrown:
    """The screen's state."""
    kept = State()
    return _fold(lambda event: apply(kept, event), step, days)


def backlog(step: int, days: int) -> HeldAndGrown:
    """What the engine keeps for screens that come late."""
    return _fold(Backlog().add, step, days)


async def _screen(step: int, days: int) -> HeldAndGrown:
    machine, feed = Machine(1, PROCESSES), Feed()
    app = DrawingApp(LiveSource(feed), UiOptions())
    async with app.run_test(size=SIZE) as pilot:
        await feed.queue.put(list(machine.beginning()))
        while len(app.state.processes) < PROCESSES:
            await pilot.pause()
        app.session.frozen = True  # frames are drawn only here, not by the app itself
        after_an_hour = 0.0
        for second in _seconds(step, days):
            for event in _second(machine, second):
                apply(app.state, event)
            if second % (4 * step if second < HOUR_S else 60 * step) == 0:
                app.redraw()
                await asyncio.sleep(_DRAWN_S)
            if second == HOUR_S:
                after_an_hour = _resident_mb()
        return after_an_hour, _resident_mb() - after_an_hour


def screen(step: int, days: int) -> HeldAndGrown:
    """The whole screen, drawing frames all the while."""
    return asyncio.run(_screen(step, days))


def measure(quick: bool) -> list[Row]:
    """Measure the growth from the first simulated hour to the end of the day, and of thirty days."""
    rows = []
    for days, step in ((1, 5 if quick else 1), (LONG_DAYS, LONG_STEP)):
        rows += [_row(side, step, days) for side in (state, backlog, screen)]
    return rows


def _row(side: Callable[[int, int], HeldAndGrown], step: int, days: int) -> Row:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        after_an_hour, grown = other.submit(side, step, days).result()
    told = (side.__doc__ or "").rstrip(".")
    what = f"{'engine' if side is backlog else 'screen'}, {told[0].lower()}{told[1:]}"
    span = "24 h" if days == 1 else f"{days} days"
    return Row(
        f"growth over a simulated {span} of the {what}",
        f"+{BOUND_SHARE:.0%}",
        f"{grown / after_an_hour:+.1%}: {grown:+.1f} MB",
        f"resident memory after {span} less that after 1 h ({after_an_hour:.0f} MB), "
        + (f"of the later hours every {step}th second only" if step > 1 else "1.2 million events"),
        grown <= BOUND_SHARE * after_an_hour,
    )
