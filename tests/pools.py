"""Pools cut into chunks, and the events that a probe would send of them."""

import random
from collections.abc import Sequence

from tests import streams as s
from tfmemtop import events

MIB = 2**20
CELLS = 2048
BASE = 0x7F00_0000_0000

Cut = Sequence[tuple[int, bool]]
"""A region: its chunks in the order of their addresses. Each has its size in bytes, and whether it is in use."""


def memory_map(
    t: float,
    cuts: Sequence[Cut],
    *,
    pid: int = 100,
    device: str = "GPU:0",
    zoom: int | None = None,
    cells: int = CELLS,
    out_of_memory: bool = False,
) -> events.MemoryMap:
    """Return the map of a pool with regions cut like *cuts*. With *zoom*, it shows only the region with that index."""
    addresses = [BASE + number * 2**40 for number in range(len(cuts))]
    pool = sum(size for cut in cuts for size, _ in cut)
    chunks = [chunk for start, cut in zip(addresses, cuts, strict=True) for chunk in _at(start, cut)]
    free = [size for _, size, used in chunks if not used]
    in_use = pool - sum(free)
    regions, filled = [], bytearray()
    for index, (address, cut) in enumerate(zip(addresses, cuts, strict=True)):
        size = sum(chunk for chunk, _ in cut)
        count = 1 + (cells - len(cuts)) * size // pool if zoom is None else cells if index == zoom else 0
        count = min(count, max(1, size // 256), cells - len(filled))
        filled += _fill(cut, size, count)
        using = [chunk for chunk, used in cut if used]
        regions.append(events.Region(address, size, sum(using), len(cut), len(using), count))
    sizes = [0] * 64
    bins: dict[int, list[int]] = {}
    for _, size, used in chunks:
        sizes[size.bit_length() - 1] += used
        row = bins.setdefault(min(20, max(0, size.bit_length() - 9)), [0, 0, 0, 0])
        for place, amount in enumerate((1, int(used), size, size * used)):
            row[place] += amount
    biggest = sorted((one for one in chunks if one[2]), key=lambda one: -one[1])[:20]
    return events.MemoryMap(
        t=t,
        pid=pid,
        device=device,
        moment=events.MapMoment.OUT_OF_MEMORY if out_of_memory else events.MapMoment.LIVE,
        region=None if zoom is None else addresses[zoom],
        pool=pool,
        in_use=in_use,
        chunks=len(chunks),
        chunks_in_use=len(chunks) - len(free),
        largest_free=max(free, default=0),
        fragmentation=(sum(free) - max(free)) / sum(free) if free else 0.0,
        regions_found=len(cuts),
        cells=bytes(filled),
        regions=regions,
        bins=[events.Bin(number, 256 << number, *row) for number, row in sorted(bins.items())],
        sizes=sizes,
        biggest=[events.Chunk(address, size, size - size // 37) for address, size, _ in biggest],
        cost_us=135,
        pace_s=1.0,
    )


def _at(start: int, cut: Cut) -> list[tuple[int, int, bool]]:
    found = []
    for size, used in cut:
        found.append((start, size, used))
        start += size
    return found


def _fill(cut: Cut, size: int, count: int) -> bytes:
    used = [0] * count
    for begin, chunk, busy in _at(0, cut):
        end = begin + chunk
        at = begin
        while count and busy and at < end:
            cell = at * count // size
            stop = min(end, -(-size * (cell + 1) // count))
            stop = max(stop, at + 1)
            used[cell] += stop - at
            at = stop
    shares = bytearray()
    for cell, bytes_used in enumerate(used):
        whole = -(-size * (cell + 1) // count) - -(-size * cell // count)
        mixed = min(254, max(1, 255 * bytes_used // max(1, whole)))
        shares.append(0 if not bytes_used else 255 if bytes_used >= whole else mixed)
    return bytes(shares)


def cut_up(size: int, seed: int, share: float = 0.7, smallest: int = 64 * 1024) -> list[tuple[int, bool]]:
    """Return *size* bytes, cut into chunks of many sizes. About the share *share* of the chunks is in use."""
    chance = random.Random(seed)
    chunks: list[tuple[int, bool]] = []
    left = size
    while left > 0:
        chunk = min(left, max(smallest, int(size * chance.random() ** 4) // 256 * 256))
        used = chance.random() < share
        if chunks and not used and not chunks[-1][1]:
            chunks[-1] = chunks[-1][0] + chunk, False  # free neighbours are one chunk
        else:
            chunks.append((chunk, used))
        left -= chunk
    return chunks


def doubling(count: int, seed: int = 1) -> list[Cut]:
    """Return *count* regions as BFC takes them: the first has 2 MiB, and each of the others twice the one before."""
    sizes = [2 * MIB << number for number in range(count)]
    return [cut_up(size, seed + number, 0.9 - number * 0.05, size // 40) for number, size in enumerate(sizes)]


def growths(cuts: Sequence[Cut], pid: int = 100, device: str = "GPU:0") -> list[events.Event]:
    """Return one growth for each region, a second and a half apart."""
    found: list[events.Event] = []
    before = 0
    for number, cut in enumerate(cuts):
        after = before + sum(size for size, _ in cut)
        at = 2.0 + 1.5 * number
        found.append(events.PoolGrowth(t=at, pid=pid, device=device, at=at - 0.045, before=before, after=after))
        before = after
    return found


def watched(cuts: Sequence[Cut], t: float = 30.0, **changes: object) -> list[events.Event]:
    """Return the events of a training on a GPU whose pool is cut like *cuts*."""
    newest = memory_map(t, cuts, **changes)  # type: ignore[arg-type]
    return [
        *s.initialised(),
        events.Probe(t=1.3, pid=100, state=events.ProbeState.LOADED),
        s.requested(1.15, events.Call.SET_MEMORY_GROWTH, ["GPU:0"], growth=True),
        *growths(cuts),
        s.device_reading(t, {100: newest.pool + 600 * MIB}),
        events.Allocator(
            t=t, pid=100, device="GPU:0", allocator="GPU_0_bfc", in_use=newest.in_use, peak=newest.in_use + 100 * MIB,
            pool=newest.pool, limit=None, peak_pool=newest.pool, allocations=123_456, high=newest.in_use,
        ),
        newest,
    ]  # fmt: skip


def check_map(found: events.MemoryMap) -> None:
    """Check that all parts of a map agree with each other."""
    assert len(found.cells) == sum(region.cells for region in found.regions) <= 2048
    for one in (found.regions, found.bins):
        assert found.chunks == sum(part.chunks for part in one)
        assert found.chunks_in_use == sum(part.chunks_in_use for part in one)
    assert (found.pool, found.in_use) == (sum(r.size for r in found.regions), sum(r.in_use for r in found.regions))
    assert (found.pool, found.in_use) == (sum(b.bytes for b in found.bins), sum(b.bytes_in_use for b in found.bins))
    assert sum(found.sizes) == found.chunks_in_use and found.regions_found == len(found.regions)
    at = 0
    for region in found.regions:
        own = found.cells[at : at + region.cells]
        at += region.cells
        if own:
            cell = region.size / len(own)
            assert abs(sum(own) / 255 * cell - region.in_use) <= region.size / 255 + 256
            assert (set(own) == {255}) == (region.size == region.in_use) and (set(own) == {0}) == (region.in_use == 0)
