"""One frame of the map's screen at its fullest, 160×48: every cell differs from its neighbour, and all have changed.

It is counted as in :mod:`.frame`: CPU time of the thread, from the newest map to the terminal's bytes. A map has at
most 2048 cells and 512 regions, however many chunks the pool has.
"""

import asyncio
import random
import statistics
import time

import msgspec

from tests import pools
from tests.tools.bench.frame import DrawingApp, Feed
from tests.tools.bench.table import Row
from tests.tools.bench.yardstick import QUIET_S, against, repaint_ms
from tfmemtop.events import MemoryMap
from tfmemtop.experiments.session.source import LiveSource
from tfmemtop.options import UiOptions
from tfmemtop.state import apply

BOUND = 5.0
"""As a multiple of a repaint of as many plain cells."""
SIZE = (160, 48)
MIB = 2**20


def _worst(cuts: list[pools.Cut], zoom: int | None = None) -> MemoryMap:
    """Return a map that uses all of its cells, with the figures of 100 000 chunks."""
    found = pools.memory_map(30.0, cuts, zoom=zoom)
    return msgspec.structs.replace(found, chunks=100_000, chunks_in_use=60_000)


def _shaken(found: MemoryMap, t: float, chance: random.Random) -> MemoryMap:
    """Return *found* with every cell changed, so that no two neighbours are drawn alike."""
    offset = chance.randrange(3)
    cells = bytes((0, 120, 255)[(at + offset) % 3] for at in range(len(found.cells)))
    return msgspec.structs.replace(found, t=t, cells=cells, in_use=found.in_use - chance.randrange(MIB))


async def _frames(cuts: list[pools.Cut], zoom: int | None, count: int) -> list[float]:
    feed, chance = Feed(), random.Random(1)
    app = DrawingApp(LiveSource(feed), UiOptions())
    found = _worst(cuts, zoom)
    stream = pools.watched(cuts)
    async with app.run_test(size=SIZE) as pilot:
        await feed.queue.put(stream)
        while app.state.run is None:
            await pilot.pause()
        app.session.frozen = True  # frames are drawn only here, not by the app itself
        app.redraw()
        await pilot.press("M", *(["enter"] if zoom is not None else []))
        await asyncio.sleep(10 * QUIET_S)
        frames = []
        for number in range(count):
            apply(app.state, _shaken(found, 31.0 + number, chance))
            before = app.drawn
            begun = time.thread_time()
            app.redraw()
            await asyncio.sleep(QUIET_S)
            frames.append((time.thread_time() - begun) * 1e3)
            if app.drawn == before:
                raise RuntimeError("a frame in which nothing was drawn")
        return frames


def measure(quick: bool) -> list[Row]:
    """Measure all regions where cells are most, a pool of the most regions, and one region alone."""
    count = 20 if quick else 60
    many: list[pools.Cut] = [pools.cut_up((1 + i % 9) * MIB, i, 0.6) for i in range(512)]
    few = pools.doubling(11)
    kinds = (
        ("2048 cells in 11 regions", few, None),
        ("2048 cells in 512 regions", many, None),
        ("2048 cells of one region", few, len(few) - 1),
    )
    rows = []
    for name, cuts, zoom in kinds:
        plain_ms = repaint_ms(SIZE)
        frames = asyncio.run(_frames(cuts, zoom, count))
        rows.append(
            Row(
                f"the map of a pool redrawn, {name}, {SIZE[0]}×{SIZE[1]}",
                f"{BOUND:g}× a repaint",
                against(frames, plain_ms, 1, "ms", f"Textual repainting {SIZE[0]}×{SIZE[1]} plain cells"),
                f"{count} frames, every cell changed and unlike its neighbours, CPU time to the terminal's bytes",
                statistics.median(frames) <= BOUND * plain_ms,
            )
        )
    return rows
