"""The text around the map of a pool: figures, regions, titles. Pure."""

from tfmemtop.state import State
from tfmemtop.state.lookup import device_of
from tfmemtop.state.pool_views import PoolKey
from tfmemtop.units import format_count, format_short

INSIDE = "Inside the pool"
SIZES = "Number of chunks by size"
BIGGEST = "Biggest chunks in use"
GROWTH = "How the pool grew"
AS_IT_RAN_OUT = "as memory ran out"
"""The word beside the key that shows the map read when an allocation failed."""


def place(state: State, key: PoolKey) -> str:
    """Return the device's name, and the physical GPU if its number is another: ``GPU:0``, ``GPU:0 on GPU 3``."""
    device = device_of(state, *key)
    if device is None or key[1] == f"GPU:{device.info.index}":
        return key[1]
    return f"{key[1]} on GPU {device.info.index}"


def of(device: str) -> str:
    """Return the title above a small map."""
    return f"Map of {device}"


def no_map(why: str) -> str:
    """Return the clause where there is no map, for the reason *why*."""
    return f"no map: {why}"


def title(place: str, allocator: str, pid: int, region: int | None) -> str:
    """Return the title above the map.

    *allocator* is empty if it is not known. *region* is the number of the region that is shown alone, if one is.
    """
    text = f"Pool of {place}{f', {allocator}' if allocator else ''}, process {pid}"
    return text + (f", region {region} alone" if region is not None else "")


def moment(at: str, *, exhausted: bool, living: bool) -> str:
    """Return when the map was read: as an allocation failed, now, or as the last map of a process that has ended."""
    if exhausted:
        return f"when an allocation failed, {at}"
    return f"as of {at}" if living else f"as it was last, at {at}"


def rows_shown(first: int, last: int, count: int) -> str:
    """Return which rows of the map are shown, counted from 1."""
    return f"rows {first} to {last} of {count}"


def chunks(count: int, in_use: int) -> str:
    """Return the number of chunks."""
    return f"{format_count(count)} ({format_count(in_use)} in use)"


def regions(found: int, shown: int) -> str:
    """Return the number of regions, and how many of them the map shows."""
    return str(found) if found <= shown else f"{found}, the first {shown} shown"


def cell(size: int) -> str:
    """Return how many bytes a cell of the map stands for."""
    return f"a cell is {format_short(size)}"


def read_in(cost: str, pace_s: float | None) -> str:
    """Return how long it took to read the map, and how often the map is read."""
    text = f"read in {cost}"
    if pace_s is None:
        return text
    return text + f", every {pace_s:.1f} s" + (" (slower, as reading takes long)" if pace_s > 1.5 else "")


def region(number: int, offset: int, size: int, full: int, taken: str) -> str:
    """Return the line about one region of the pool.

    *full* is a percentage. *taken* is the time at which the pool took the region, empty if it is not known.
    """
    when = f"taken at {taken}" if taken else "when it was taken is not known"
    return f"region {number} at {format_short(offset)}, {when}, {format_short(size)}, {full}% full"


def region_more(count: int, in_use: int, address: int) -> str:
    """Return what the line about a region ends with, where there is room: its chunks and its address."""
    return f", {count} chunk{'' if count == 1 else 's'}, {in_use} in use, at address {address:#x}"
