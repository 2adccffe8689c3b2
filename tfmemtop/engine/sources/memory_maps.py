"""Makes the map of a pool from its chunks. Pure."""

import heapq
from bisect import bisect_left
from collections.abc import Collection
from typing import NamedTuple

from tfmemtop.events import Bin, Chunk, MapMoment, MemoryMap, Region

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
