"""Reads the dump that TensorFlow writes when a pool runs out of memory, and makes the map of a pool from its chunks.

The dump is a ``tensorflow.MemoryDump``. It is decoded without TensorFlow and protobuf: the part of protobuf's wire
format that this message uses is implemented here.
"""

import heapq
from bisect import bisect_left
from collections.abc import Collection, Iterator
from typing import NamedTuple

from tfmemtop.events import Bin, Chunk, Damage, MapMoment, MemoryMap, Region
from tfmemtop.events.damage import Damaged

CELLS = 2048
REGIONS = 512
BIGGEST = 20

_SMALLEST = 256  # bytes of a chunk
_LAST_BIN = 20
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Piece(NamedTuple):
    """A chunk as the dump describes it. Addresses and sizes are in bytes."""

    address: int
    size: int
    requested: int
    in_use: bool


def read_dump(data: bytes) -> tuple[str, list[Piece]]:
    """Return the allocator's name and its chunks, in the order of their addresses.

    Raises:
        Damaged: *data* is not a complete dump.
    """
    name = ""
    pieces = []
    for field, value in _fields(data):
        if field == 1 and isinstance(value, bytes):
            name = value.decode(errors="replace")
        elif field == 3 and isinstance(value, bytes):
            parts = {number: part for number, part in _fields(value) if isinstance(part, int)}
            pieces.append(Piece(parts.get(1, 0), parts.get(2, 0), parts.get(3, 0), bool(parts.get(8, 0))))
    if not name or not pieces or any(piece.size <= 0 for piece in pieces):
        raise Damaged(Damage.CUT_SHORT)
    return name, pieces


def condense(
    pid: int,
    device: str,
    pieces: list[Piece],
    starts: Collection[int],
    *,
    moment: MapMoment = MapMoment.OUT_OF_MEMORY,
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


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, at = _varint(data, at)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            raise Damaged(Damage.OTHER_FORM)
        if at + length > len(data):
            raise Damaged(Damage.CUT_SHORT)
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Damaged(Damage.CUT_SHORT)


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
