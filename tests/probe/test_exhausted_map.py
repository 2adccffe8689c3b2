"""When a pool runs out, its map is sent ten seconds before TensorFlow's error."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines import Engines, ended
from tests.own_sessions import own_sessions
from tfmemtop.engine.sources.chunk_maps import Piece, condense
from tfmemtop.events import (
    Input,
    MapMoment,
    MapWanted,
    MemoryMap,
    OutOfMemory,
    Probe,
    ProbeState,
    Stop,
    Waiting,
)

Script = Callable[[str], str]

POOL = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "256", "TF_CPP_MIN_LOG_LEVEL": "3"}

EXHAUSTING = """
import tensorflow as tf
pieces = [tf.zeros([(1 + number % 7) << 12]) for number in range(300)]
del pieces[::3]
print("made", flush=True)
input()
tf.zeros([1 << 26])
"""


async def test_the_map_comes_before_the_error(engines: Engines, script: Script, library: Path) -> None:
    screen = await engines.run(sys.executable, script(EXHAUSTING), environment={**os.environ, **POOL})
    await screen.until_shown("made")
    probe = await screen.until(Probe, lambda probe: probe.state is ProbeState.LOADED)
    await screen.client.send(MapWanted(pid=probe.pid, device="CPU:0", pace_s=0.1))
    await screen.until(MemoryMap, lambda found: found.chunks_in_use >= 200)
    await screen.client.send(Input(text="\n"))
    copied = await screen.until(MemoryMap, lambda found: found.moment is MapMoment.OUT_OF_MEMORY)
    where = await screen.until(Waiting)
    assert (where.operation, Path(where.file).name, where.code) == ("Fill", "train.py", "tf.zeros([1 << 26])")
    assert not screen.all(OutOfMemory)
    # While TensorFlow waits, nothing changes.
    live = await screen.until(MemoryMap, lambda found: found.moment is MapMoment.LIVE and found.t > copied.t)

    # The map that we read from TensorFlow's structures and the library's map agree in every part.
    def parts(found: MemoryMap) -> list[object]:
        return [found.pid, found.device, found.pool, found.in_use, found.chunks, found.chunks_in_use, found.bins]

    assert parts(copied) == parts(live)
    assert (copied.regions, copied.cells, copied.sizes) == (live.regions, live.cells, live.sizes)
    assert (copied.largest_free, copied.fragmentation) == (live.largest_free, live.fragmentation)
    assert [chunk.size for chunk in copied.biggest] == [chunk.size for chunk in live.biggest]
    error = await screen.until(OutOfMemory)
    assert error.t > copied.t
    engine = own_sessions()[0]
    folder = Path(engine.socket).parent / "data"
    late = await engines.look(engine.socket)
    assert (await late.until(MemoryMap, lambda found: found.moment is MapMoment.OUT_OF_MEMORY)).pool == copied.pool
    await screen.client.send(Stop(quit=True))
    await ended(engine.pid)
    assert not folder.exists()


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.booleans(), st.sampled_from([0, 0, 0, 1 << 20])), min_size=1),
    st.data(),
)
def test_every_part_of_a_map_says_the_same(layout: list[tuple[int, bool, int]], data: st.DataObject) -> None:
    pieces, at = [], 1 << 40
    for units, in_use, gap in layout:
        at += gap
        pieces.append(Piece(at, units * 256, units * 256 - 7, in_use))
        at += units * 256
    starts = data.draw(st.sets(st.sampled_from([piece.address for piece in pieces])))
    found = condense(1, "GPU:0", pieces, starts)
    assert starts <= {region.address for region in found.regions}
    assert len(found.cells) == sum(region.cells for region in found.regions) <= 2048
    for total in ("in_use", "chunks", "chunks_in_use"):
        assert getattr(found, total) == sum(getattr(region, total) for region in found.regions)
    assert found.pool == sum(region.size for region in found.regions) == sum(one.bytes for one in found.bins)
    assert sum(found.sizes) == found.chunks_in_use == sum(one.chunks_in_use for one in found.bins)
    begin = 0
    for region in found.regions:
        own = found.cells[begin : begin + region.cells]
        begin += region.cells
        assert (set(own) == {255}) == (region.in_use == region.size)
        assert (set(own) == {0}) == (region.in_use == 0)
        assert sum(own) / 255 * region.size / len(own) == pytest.approx(region.in_use, abs=region.size / 255 + 256)
