"""Makes memory maps from the files into which hooks copy TensorFlow's regions and chunks.

A hook copies them without TensorFlow's lock, so a copy may mix two moments. Only a copy whose chunks fill every region
without a gap, and add up to what the allocator itself reports, becomes a map.
"""

import asyncio
import heapq
import struct
from bisect import bisect_left
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tfmemtop.engine.sources.source import Source, read_beginning
from tfmemtop.engine.stream import Stream
from tfmemtop.events import Bin, Chunk, Chunks, Damage, Event, HookEnd, MapMoment, MemoryMap, Region
from tfmemtop.events.damage import Damaged, damage_of

CELLS = 2048
REGIONS = 512
BIGGEST = 20

_SMALLEST = 256  # bytes of a chunk
_LAST_BIN = 20


class Piece(NamedTuple):
    """A chunk. Addresses and sizes are in bytes."""

    address: int
    size: int
    requested: int
    in_use: bool


def condense(
    pid: int,
    device: str,
    pieces: list[Piece],
    starts: Collection[int],
    *,
    moment: MapMoment = MapMoment.LIVE,
    only: int | None = None,
    cost_us: int | None = None,
    pace_s: float | None = None,
    t: float = 0.0,
) -> MemoryMap:
    """Return the map of the pool that has the chunks *pieces*.

    *pieces* are in the order of their addresses. *starts* are addresses where regions are known to begin. With *only*,
    all cells are of the region that begins at that address. *cost_us* and *pace_s* are copied into the map.
    """
    regions = _regions(pieces, frozenset(starts))
    pool = sum(piece.size for piece in pieces)
    used = [piece for piece in pieces if piece.in_use]
    in_use = sum(piece.size for piece in used)
    largest = max((piece.size for piece in pieces if not piece.in_use), default=0)
    listed = regions[:REGIONS]
    counts = _deal([(region[0].address, sum(piece.size for piece in region)) for region in listed], pool, only)
    return MemoryMap(
        t=t,
        pid=pid,
        device=device,
        moment=moment,
        region=only,
        pool=pool,
        in_use=in_use,
        chunks=len(pieces),
        chunks_in_use=len(used),
        largest_free=largest,
        fragmentation=_fragmentation(pool - in_use, largest),
        regions_found=len(regions),
        cells=b"".join(_cells(region, count) for region, count in zip(listed, counts, strict=True)),
        regions=[_region(region, count) for region, count in zip(listed, counts, strict=True)],
        bins=_bins(pieces),
        sizes=_sizes(used),
        biggest=_biggest(used),
        cost_us=cost_us,
        pace_s=pace_s,
    )


def _fragmentation(free: int, largest: int) -> float:
    """Return the share, from 0 to 1, of the *free* bytes that are not in the largest free chunk."""
    return round((free - largest) / free, 6) if free > 0 else 0.0


def _region(pieces: list[Piece], cells: int) -> Region:
    """Return the figures of the region of *pieces*, which has so many *cells*."""
    return Region(
        address=pieces[0].address,
        size=sum(piece.size for piece in pieces),
        in_use=sum(piece.size for piece in pieces if piece.in_use),
        chunks=len(pieces),
        chunks_in_use=sum(piece.in_use for piece in pieces),
        cells=cells,
    )


def _sizes(used: list[Piece]) -> list[int]:
    """Return how many chunks are in use, by the power of two that their size reaches."""
    sizes = [0] * max((piece.size.bit_length() for piece in used), default=0)
    for piece in used:
        sizes[piece.size.bit_length() - 1] += 1
    return sizes


def _biggest(used: list[Piece]) -> list[Chunk]:
    found = heapq.nlargest(BIGGEST, used, key=lambda piece: piece.size)
    return [Chunk(piece.address, piece.size, piece.requested) for piece in found]


def _regions(pieces: list[Piece], starts: frozenset[int]) -> list[list[Piece]]:
    regions: list[list[Piece]] = []
    end = -1
    for piece in pieces:
        if piece.address != end or piece.address in starts:
            regions.append([])
        regions[-1].append(piece)
        end = piece.address + piece.size
    return regions


def _deal(regions: list[tuple[int, int]], pool: int, only: int | None) -> list[int]:
    """Return the number of cells of each region. *regions* are addresses and sizes in bytes, *pool* is the pool's size.

    A region has at least one cell, and more in proportion to its size. With *only*, the region at that address has all
    cells. In both cases a region has no more cells than its chunks could be, at 256 bytes each.
    """
    spare = max(0, CELLS - len(regions))
    shares = [
        1 + spare * size // pool if only is None else CELLS if address == only else 0 for address, size in regions
    ]
    return [min(share, max(1, size // _SMALLEST)) for share, (_, size) in zip(shares, regions, strict=True)]


def _cells(region: list[Piece], count: int) -> bytes:
    if not count:
        return b""
    begin = region[0].address
    size = region[-1].address + region[-1].size - begin
    borders = [size * cell // count for cell in range(count + 1)]
    used = [0] * count
    for piece in region:
        if not piece.in_use:
            continue
        at, end = piece.address - begin, piece.address - begin + piece.size
        cell = max(0, bisect_left(borders, at + 1) - 1)
        while at < end:
            stop = min(end, borders[cell + 1])
            used[cell] += stop - at
            at, cell = stop, cell + 1
    return bytes(_share(used[cell], borders[cell + 1] - borders[cell]) for cell in range(count))


def _share(used: int, size: int) -> int:
    """Return the value of a cell. It is 0 only if no byte is in use, and 255 only if all bytes are."""
    if used <= 0:
        return 0
    return 255 if used >= size else min(max(1, int(used * 255 / size + 0.5)), 254)


def _bins(pieces: list[Piece]) -> list[Bin]:
    counted: dict[int, list[int]] = {}
    for piece in pieces:
        number = min((max(piece.size, _SMALLEST) // _SMALLEST).bit_length() - 1, _LAST_BIN)
        one = counted.setdefault(number, [0, 0, 0, 0])
        one[0] += 1
        one[1] += piece.in_use
        one[2] += piece.size
        one[3] += piece.size if piece.in_use else 0
    return [Bin(number, _SMALLEST << number, *figures) for number, figures in sorted(counted.items())]


SUFFIX = ".chunks"

_REGIONS, _CHUNKS, _WANTED = 10_000, 250_000, 8  # at most, whatever a hook sends
_LARGEST = 4096  # bytes of the structure of one region or chunk
_NONE = -1  # the number of a chunk that is not in use, and the bin of a chunk that is not free
_FAILURES = 20
"""After this many unusable copies in a row, the map is reported as missing."""


_Key = tuple[int, str, MapMoment]


class ChunkMaps(Source):
    """Reads the copies in *folder* in a thread, and publishes the maps that are requested of them."""

    def __init__(self, stream: Stream, folder: Path) -> None:
        super().__init__(stream)
        self._folder = folder
        self._newest: dict[_Key, Chunks] = {}
        self._failures: dict[_Key, int] = {}
        self._gone: set[int] = set()  # processes whose files can be deleted
        self._arrived = asyncio.Event()

    def begin(self) -> None:
        """Make the folder, and start waiting for copies. Call it in the running event loop."""
        with suppress(OSError):  # then a hook says why it has no copy
            self._folder.mkdir(mode=0o700, exist_ok=True)
        self._keep_doing(self._watch())
        super().begin()

    def drain(self) -> None:
        """Publish the maps of all copies until now, so that the end of a run is published after them."""
        while self._newest:
            chunks = self._next()
            self._publish(chunks, _maps(self._folder, chunks, self._stream.now()))
        self._clear()

    def take(self, chunks: Chunks) -> None:
        """Note that a hook has written a copy of a pool into its file. The copy before that is overwritten."""
        self._newest[_key(chunks)] = chunks
        self._arrived.set()

    def _next(self) -> Chunks:
        return self._newest.pop(next(iter(self._newest)))

    async def _watch(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._newest:
                chunks = self._next()
                now = self._stream.now()
                self._publish(chunks, await asyncio.to_thread(_maps, self._folder, chunks, now))
            self._clear()

    def _publish(self, chunks: Chunks, found: list[MemoryMap] | tuple[Damage, str]) -> None:
        key = _key(chunks)
        if isinstance(found, list):
            self._failures.pop(key, None)
            for one in found:
                self._stream.publish(one)
            return
        self._failures[key] = self._failures.get(key, 0) + 1
        if self._failures[key] == _FAILURES:
            now = self._stream.now()
            damage, detail = found
            self._stream.publish(MemoryMap(t=now, pid=chunks.pid, device=chunks.device, damage=damage, detail=detail))

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        if isinstance(event, HookEnd):
            self._gone.add(event.pid)
            self._arrived.set()

    def _clear(self) -> None:
        while self._gone:
            for path in self._folder.glob(f"{self._gone.pop()}.*{SUFFIX}"):
                path.unlink(missing_ok=True)


def _key(chunks: Chunks) -> _Key:
    return chunks.pid, chunks.device, chunks.moment


def _maps(folder: Path, chunks: Chunks, t: float) -> list[MemoryMap] | tuple[Damage, str]:
    """Return the maps that are requested of a copy, or why there are none."""
    try:
        pieces, starts = read_chunks(folder, chunks)
        return [
            condense(
                chunks.pid,
                chunks.device,
                pieces,
                starts,
                only=region,
                moment=chunks.moment,
                cost_us=chunks.cost_us,
                pace_s=pace_s if chunks.moment is MapMoment.LIVE else None,
                t=t,
            )
            for region, pace_s in chunks.wanted[:_WANTED]
        ]
    except (OSError, ValueError) as error:
        return damage_of(error)


def read_chunks(folder: Path, chunks: Chunks) -> tuple[list[Piece], list[int]]:
    """Return the chunks in the order of their addresses, and the addresses where regions begin.

    Raises:
        OSError: the file is not there, or cannot be read.
        Damaged: the file is not complete, or its content is not of one moment.
    """
    count_of_regions, region_size, region_address, region_bytes = chunks.regions
    count, size, address, length = chunks.chunks
    requested, id_, bin_ = chunks.chunk
    if not (0 <= count_of_regions <= _REGIONS and 0 <= count <= _CHUNKS):
        raise Damaged(Damage.TOO_MANY)
    of_regions = _form(region_size, [(region_address, "Q"), (region_bytes, "Q")])
    of_chunks = _form(size, [(length, "Q"), (requested, "Q"), (id_, "q"), (address, "Q"), (bin_, "i")])
    regions_size, chunks_size = count_of_regions * region_size, count * size
    data = read_beginning(
        folder, f"{chunks.pid}.{chunks.device}.{chunks.moment.value}{SUFFIX}", regions_size + chunks_size
    )
    regions = sorted(of_regions.iter_unpack(data[:regions_size]))
    pieces = [
        Piece(at, whole, asked, number != _NONE)
        for whole, asked, number, at, bin_number in of_chunks.iter_unpack(data[regions_size:])
        # With neither, this place in TensorFlow's list of chunks holds no chunk.
        if number != _NONE or bin_number != _NONE
    ]
    pieces.sort()
    _check(pieces, regions, chunks)
    return pieces, [at for at, _ in regions]


def _check(pieces: list[Piece], regions: list[tuple[int, int]], chunks: Chunks) -> None:
    borders = [(at, at + size) for at, size in regions]
    expected = in_use = 0
    region = iter(borders)
    end = -1
    for piece in pieces:
        if expected == end or end < 0:
            expected, end = next(region, (-1, -1))
        if piece.address != expected or piece.size <= 0:
            raise Damaged(Damage.GAPS)
        expected += piece.size
        in_use += piece.size if piece.in_use else 0
    if expected != max(end, 0) or next(region, None) is not None:
        raise Damaged(Damage.GAPS)
    if in_use != chunks.in_use or sum(size for _, size in regions) != chunks.pool:
        raise Damaged(Damage.IN_USE)


def _form(size: int, places: list[tuple[int, str]]) -> struct.Struct:
    """Return the form that reads fields of a structure of *size* bytes.

    *places* are the offset and the format letter of each field, in the order in which the fields are to be unpacked.

    Raises:
        Damaged: the offsets do not rise, fields overlap, or *size* does not fit.
    """
    form, at = "<", 0
    for place, figure in places:
        if place < at:
            raise Damaged(Damage.OTHER_FORM)
        form += f"{place - at}x{figure}"
        at = place + struct.calcsize("<" + figure)
    if not at <= size <= _LARGEST:
        raise Damaged(Damage.OTHER_FORM)
    return struct.Struct(f"{form}{size - at}x")
