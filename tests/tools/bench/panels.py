"""The two most expensive panels alone, in each of their views: devices and processes, 200×60."""

import asyncio
import statistics
import time
from collections.abc import Callable

from textual.app import App, ComposeResult

from tests.tools.bench.table import Row
from tests.tools.bench.yardstick import against, repaint_ms
from tests.ui.process_data import crowd
from tests.ui.synthetic_devices import GIB, begun, read, start_run
from tfmemtop.state import State
from tfmemtop.ui.draw.scale import Scale
from tfmemtop.ui.draw.window import SPANS
from tfmemtop.ui.panels.device_panel import DevicesPanel
from tfmemtop.ui.panels.process_table import ProcessTable

TABLE_BOUND, DEVICES_BOUND = 1.2, 2.0
"""As multiples of a repaint of as many plain cells."""
SIZE = (200, 60)
DAY_S = 86_400


class _Screen(App[None]):
    def compose(self) -> ComposeResult:
        yield ProcessTable()


def _median_ms(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        begun_s = time.thread_time()
        work()
        taken.append((time.thread_time() - begun_s) * 1e3)
    return statistics.median(taken)


async def _table(rounds: int) -> dict[str, float]:
    state = crowd(500, 16)
    app = _Screen()
    async with app.run_test(size=SIZE) as pilot:
        table = app.query_one(ProcessTable)
        await pilot.pause()
        frames = {"as it starts": _median_ms(lambda: table.show(state), rounds)}
        table.action_edge(1)
        frames["at the end"] = _median_ms(lambda: table.show(state), rounds)
        table.as_tree = True
        frames["as a tree"] = _median_ms(lambda: table.show(state), rounds)
        table.as_tree, table.filter.text = False, "ada"
        frames["filtered"] = _median_ms(lambda: table.show(state), rounds)
    return frames


def _tick(state: State, t: float, gpus: int) -> None:
    use = int(t * 37 % 40 + 5)
    for gpu in range(gpus):
        read(state, t, gpu, in_use=use * GIB, pool=60 * GIB, others=int(t % 30) * GIB, limit=80 * GIB)


def _devices_ms(state: State, gpus: int, span: int, scale: Scale, rounds: int) -> float:
    """Return the median milliseconds of a frame, with a second of new readings in each.

    The first frame is left out, because it draws every graph from its beginning.
    """
    panel = DevicesPanel()
    panel.state = state
    panel.cycle_span(span - panel.span)
    panel.scale = scale
    taken = []
    for _ in range(rounds + 1):
        _tick(state, state.now + 1.0, gpus)
        taken.append(_median_ms(lambda: panel.build(*SIZE), 1))
    return statistics.median(taken[1:])


def _devices(gpus: int, rounds: int) -> dict[str, float]:
    state = begun(gpus)
    start_run(state, 1, 0.0)
    frames = {}
    for age, begin, end, every_s in (("5 min", 0, 300, 1), ("24 h", 300 + 12 * (rounds + 1), DAY_S, 60)):
        for second in range(begin, end, every_s):
            _tick(state, float(second), gpus)
        for span in (1, len(SPANS) - 1):
            for scale in (Scale.AUTO, Scale.WHOLE):
                name = f"after {age}, spanning {SPANS[span][1]}, {scale.value}"
                frames[name] = _devices_ms(state, gpus, span, scale, rounds)
    return frames


def _row(what: str, bound: float, frames: dict[str, float], rounds: int) -> Row:
    plain_ms = repaint_ms(SIZE)
    name, worst = max(frames.items(), key=lambda frame: frame[1])
    return Row(
        what,
        f"{bound:g}× a repaint",
        against([*frames.values()], plain_ms, 1, "ms", f"Textual repainting {SIZE[0]}×{SIZE[1]} plain cells"),
        f"{rounds} frames in each of {len(frames)} manners, medians of CPU time; the dearest: {name}",
        worst <= bound * plain_ms,
    )


def measure(quick: bool) -> list[Row]:
    """Measure the table with 500 processes, and the devices with and without graphs."""
    rounds = 15 if quick else 50
    return [
        _row("the process table in a frame, 500 processes", TABLE_BOUND, asyncio.run(_table(rounds)), rounds),
        *(
            _row(f"the devices' panel in a frame, {gpus} GPUs, {how}", DEVICES_BOUND, _devices(gpus, rounds), rounds)
            for gpus, how in ((8, "a graph each"), (16, "as bars"))
        ),
    ]
