"""Views of pools: a row for each, and the inside of one: its map, with what is known of its growth."""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from tfmemtop import events
from tfmemtop.events.machine import DeviceKind, kind_of
from tfmemtop.frameworks import FrameworkName
from tfmemtop.state.lookup import began, cached_of, card_of, device_of, hooked_of, limit_of, once_per_revision
from tfmemtop.state.model import Pool, State

PoolKey = tuple[int, str]
"""The pid of a process and the name of one of its logical devices."""


class RegionView(msgspec.Struct, frozen=True):
    """A region: ``number`` counts from 1 in the order of addresses, ``offset`` is bytes of the pool before it.

    ``cells`` has one byte for each slice of the region: its share in use, 0 to 255. ``taken_s`` is when the pool took
    the region, in seconds since the run began; ``None`` if that was not recorded. ``sure`` is false if the pool may
    have taken another region at that time.
    """

    number: int
    address: int
    offset: int
    size: int
    in_use: int
    chunks: int
    chunks_in_use: int
    cells: bytes
    taken_s: float | None = None
    sure: bool = True

    @property
    def full(self) -> int:
        """Percent in use; 0 and 100 only for nothing and all."""
        return percent(self.in_use, self.size)


class SizeRow(msgspec.Struct, frozen=True):
    """Chunks of ``size`` bytes up to twice that."""

    size: int
    in_use: int
    free: int
    free_bytes: int
    free_above: bool = False  # its free chunks may also have any larger size


class BigChunk(msgspec.Struct, frozen=True):
    """One of the biggest chunks in use; ``region`` is the number of its region, ``waste`` are bytes not requested."""

    size: int
    requested: int
    region: int | None
    offset: int

    @property
    def waste(self) -> int:
        return max(0, self.size - self.requested)


class GrowthView(msgspec.Struct, frozen=True):
    """A pool took (``change`` above 0) or gave back bytes, ``at_s`` seconds after the run began.

    ``region`` is the number of the region that it took, and ``full`` its percent in use now, where known.
    """

    at_s: float
    change: int
    after: int
    region: int | None = None
    full: int | None = None


class PoolMap(msgspec.Struct, frozen=True):
    """The inside of a pool, ``at_s`` seconds after the run began, by the event ``read``."""

    read: events.MemoryMap
    at_s: float
    exhausted: bool  # the map was made when an allocation failed
    regions: tuple[RegionView, ...]
    sizes: tuple[SizeRow, ...]
    biggest: tuple[BigChunk, ...]
    growths: tuple[GrowthView, ...]

    @property
    def cached(self) -> int:
        return max(0, self.read.pool - self.read.in_use)


def percent(part: int, whole: int) -> int:
    """Return *part* of *whole* in percent, rounded; 0 and 100 only for nothing and all."""
    if whole <= 0 or part <= 0:
        return 0
    return 100 if part >= whole else min(99, max(1, round(100 * part / whole)))


def pools(state: State) -> list[PoolKey]:
    """Return every allocator of hooked processes that was read: living processes first, GPUs before the rest."""
    order = {DeviceKind.GPU: 0, DeviceKind.CPU: 1}
    found = [
        (process.hooked.ended, pid, order.get(kind_of(device), 2), device)
        for pid, process in state.processes.items()
        if process.hooked
        for device in process.hooked.allocators
    ]
    return [(pid, device) for _, pid, _, device in sorted(found)]


def choose(state: State, pid: int | None = None) -> PoolKey | None:
    """Return the pool to show: the first of process *pid*, else the first of all."""
    found = pools(state)
    return next((key for key in found if key[0] == pid), found[0] if found else None)


def can_be_read(state: State, key: PoolKey) -> bool:
    """Return whether the pool can still be read."""
    hooked = hooked_of(state, key[0])
    return hooked is not None and not hooked.ended


def exhausted(state: State, key: PoolKey) -> events.MemoryMap | None:
    """Return the newest map that TensorFlow wrote when an allocation failed."""
    pool = _pool(state, key)
    return pool.exhausted if pool else None


def pool_map(state: State, key: PoolKey, *, zoom: int | None = None, out_of_memory: bool = False) -> PoolMap | None:
    """Return the newest map of a pool; ``None`` if there is none yet.

    With *zoom*, a region's address, only that region has cells, the finest that are known. With
    *out_of_memory* the map shows the moment when an allocation failed.
    """
    pool = _pool(state, key)
    if pool is None:
        return None
    run_began = began(state, key[0])
    if out_of_memory:
        newest = pool.exhausted
    else:
        known = [one for one in (pool.map, pool.zoom) if one is not None and not one.is_missing]
        if zoom is None:
            known = [one for one in known if one.region is None] or known
        newest = max(known, key=lambda one: one.t, default=None)
    if newest is None or newest.is_missing:
        return None
    growths = [event for event in pool.growths if event.at <= newest.t + 1.0]
    regions = _regions(newest, _taken(newest.regions, growths), run_began)
    if zoom is not None:
        regions = _zoomed(regions, newest, pool.map, zoom)
    return PoolMap(
        read=newest,
        at_s=newest.t - run_began,
        exhausted=out_of_memory,
        regions=tuple(regions),
        sizes=tuple(_sizes(newest)),
        biggest=tuple(_biggest(newest.biggest, regions)),
        growths=tuple(_growths(growths, regions, run_began)),
    )


def _pool(state: State, key: PoolKey) -> Pool | None:
    hooked = hooked_of(state, key[0])
    return hooked.pools.get(key[1]) if hooked else None


def _regions(newest: events.MemoryMap, taken: "dict[int, tuple[float, bool]]", began: float) -> list[RegionView]:
    views = []
    offset = first = 0
    for number, region in enumerate(newest.regions, 1):
        last = first + max(0, region.cells)
        at, sure = taken.get(region.address, (None, True))
        views.append(
            RegionView(
                number=number,
                address=region.address,
                offset=offset,
                size=region.size,
                in_use=region.in_use,
                chunks=region.chunks,
                chunks_in_use=region.chunks_in_use,
                cells=newest.cells[first:last],
                taken_s=None if at is None else at - began,
                sure=sure,
            )
        )
        first, offset = last, offset + region.size
    return views


def _zoomed(
    regions: list[RegionView], newest: events.MemoryMap, whole: events.MemoryMap | None, zoom: int
) -> list[RegionView]:
    """Return *regions* with cells only for the one at *zoom*: cells of the *whole* map until finer ones come."""
    coarse: dict[int, bytes] = {}
    if newest.region != zoom:
        coarse = {region.address: region.cells for region in regions if region.cells}
        if not coarse.get(zoom) and whole is not None and not whole.is_missing:
            coarse = {region.address: region.cells for region in _regions(whole, {}, 0.0)}
    return [
        replace(region, cells=(coarse.get(zoom, b"") or region.cells) if region.address == zoom else b"")
        for region in regions
    ]


def _taken(regions: Iterable[events.Region], growths: Iterable[events.PoolGrowth]) -> "dict[int, tuple[float, bool]]":
    """Return, by address, when the pool took each region, in session seconds, and whether that is sure.

    A growth has a size, but no address: of regions of the same size, it may be any.
    """
    steps: dict[int, list[float]] = {}
    for growth in growths:
        change = growth.after - growth.before
        if change > 0:
            steps.setdefault(change, []).append(growth.at)
        elif steps.get(-change):
            steps[-change].pop()
    alike: dict[int, list[int]] = {}
    for region in regions:
        alike.setdefault(region.size, []).append(region.address)
    taken: dict[int, tuple[float, bool]] = {}
    for size, addresses in alike.items():
        times = steps.get(size, [])
        for address, at in zip(addresses, times, strict=False):
            taken[address] = at, len(addresses) == len(times) == 1
    return taken


def _growths(growths: Iterable[events.PoolGrowth], regions: list[RegionView], began: float) -> list[GrowthView]:
    by_time = {region.taken_s: region for region in regions if region.taken_s is not None}
    rows = []
    for growth in growths:
        at_s, change = growth.at - began, growth.after - growth.before
        region = by_time.get(at_s) if change > 0 else None
        sure = region is not None and region.sure
        rows.append(
            GrowthView(
                at_s=at_s,
                change=change,
                after=growth.after,
                region=region.number if region and sure else None,
                full=region.full if region and sure else None,
            )
        )
    return rows


def _sizes(newest: events.MemoryMap) -> list[SizeRow]:
    """Return the chunks by powers of two: those in use are counted one by one, free ones by bin."""
    in_use = {1 << power: count for power, count in enumerate(newest.sizes) if count}
    free = {one.size: one for one in newest.bins if one.chunks > one.chunks_in_use}
    last_bin = max((one.size for one in newest.bins if one.number == _LAST_BIN), default=None)
    rows = []
    for size in sorted(in_use.keys() | free.keys()):
        one = free.get(size)
        rows.append(
            SizeRow(
                size=size,
                in_use=in_use.get(size, 0),
                free=one.chunks - one.chunks_in_use if one else 0,
                free_bytes=one.bytes - one.bytes_in_use if one else 0,
                free_above=one is not None and size == last_bin,
            )
        )
    return rows


_LAST_BIN = 20
"""The number of BFC's last bin, which has all larger chunks too."""


def _biggest(biggest: Iterable[events.Chunk], regions: list[RegionView]) -> list[BigChunk]:
    rows = []
    for chunk in biggest:
        home = next((one for one in regions if one.address <= chunk.address < one.address + one.size), None)
        offset = chunk.address - home.address if home else 0
        rows.append(BigChunk(chunk.size, chunk.requested, home.number if home else None, offset))
    return rows


class AllocatorRow(msgspec.Struct, frozen=True):
    """One allocator of one process: TensorFlow's, or that of another ``framework``."""

    pid: int
    device: str
    gpu: int | None
    allocator: str | None
    in_use: int | None
    cached: int | None
    pool: int | None
    peak: int | None
    limit: int | None
    growth: bool | None
    ended: bool
    framework: FrameworkName | None = None


@once_per_revision
def allocators(state: State) -> list[AllocatorRow]:
    """Return a row for every allocator of every hooked process, with its newest reading."""
    rows = []
    for pid, process in state.processes.items():
        if process.hooked is None:
            continue
        for logical, reading in sorted(process.hooked.allocators.items()):
            effective = process.hooked.effective.get(logical)
            device = device_of(state, pid, logical)
            rows.append(
                AllocatorRow(
                    pid=pid,
                    device=logical,
                    gpu=device.info.index if device else None,
                    allocator=reading.allocator or (effective.allocator if effective else None),
                    in_use=reading.in_use,
                    cached=cached_of(reading.pool, reading.in_use),
                    pool=reading.pool,
                    peak=reading.peak,
                    limit=limit_of(process.hooked, logical),
                    growth=effective.growth if effective else None,
                    ended=process.hooked.ended,
                )
            )
        others = process.hooked.frameworks.values()
        rows += [_framework_row(state, reading, process.hooked.ended) for reading in others]
    return rows


def _framework_row(state: State, reading: events.Framework, ended: bool) -> AllocatorRow:
    card = card_of(state, reading)
    return AllocatorRow(
        pid=reading.pid,
        device=reading.device,
        gpu=card.info.index if card else None,
        allocator=reading.framework.title,
        in_use=reading.in_use,
        cached=cached_of(reading.held, reading.in_use),
        pool=reading.held,
        peak=reading.peak,
        limit=reading.limit,
        growth=None,
        ended=ended,
        framework=reading.framework,
    )
