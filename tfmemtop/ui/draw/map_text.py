"""The text around the map of a pool: figures, regions, titles. Pure."""

from tfmemtop.events import Mapless, MemoryMap, ProbeState
from tfmemtop.events.damage import damage_text
from tfmemtop.findings.probe import probe_remedy, probe_text
from tfmemtop.state import State
from tfmemtop.state.lookup import device_of
from tfmemtop.state.pool_views import Missing, NoMap, PoolKey
from tfmemtop.units import format_count, format_short

_LIBRARY = "the probe, which reads pools from inside,"

_STATES = {
    ProbeState.BUILDING: f"{_LIBRARY} is being built",
    ProbeState.BUILT: "the probe waits for TensorFlow's devices",
    ProbeState.LOADING: f"{_LIBRARY} is being loaded",
    ProbeState.UNAVAILABLE: f"{_LIBRARY} cannot be built here",
    ProbeState.FAILED: f"{_LIBRARY} failed",
}


_MAPLESS = {
    Mapless.ASYNC: "cuda_malloc_async, CUDA's own pool, does not show how it is cut up",
    Mapless.NOT_BFC: "only pools of the allocator BFC have a map, and this is another one",
    Mapless.NO_FOLDER: "the session's folder is not known in this process",
    Mapless.TOO_MANY: "the pool has more than {count} chunks, which only the probe can read",
    Mapless.NO_ROOM: "there is no room to put the map down: {detail}",
}


def why_text(why: NoMap) -> str:
    """Return why there is no map, as one clause without a full stop."""
    match why.reason:
        case Missing.PROCESS_FORGOTTEN:
            return f"nothing is known of process {why.pid} any more"
        case Missing.MAP_REFUSED:
            return refusal_text(why.refusal) if why.refusal else ""
        case Missing.NO_LIBRARY:
            return _no_library(why)
        case Missing.PUBLIC_FIGURES_ONLY:
            return probe_text(why.without) if why.without else ""
        case Missing.NOT_STARTED:
            return f"{_LIBRARY} is not in this process yet"
        case Missing.ENDED:
            return "the process ended before its map was read"
        case Missing.NOT_READ_YET:
            return "no map has been read yet"


def refusal_text(event: MemoryMap) -> str:
    """Return why *event* has no map; empty where it has one."""
    if event.mapless is not None:
        most = format_count(event.count or 0)
        return _MAPLESS[event.mapless].format(count=most, detail=event.detail)
    why = damage_text(event.damage, event.detail) if event.damage is not None else ""
    if why and event.of_copy:
        return f"this pool was read without the probe, and no map could be made of it: {why}"
    return why


def remedy_text(why: NoMap) -> str:
    """Return what helps to get a map; empty where nothing is known to help."""
    return probe_remedy(why.library) if why.library else ""


def _no_library(why: NoMap) -> str:
    parts = [(probe_text(why.library) or _STATES.get(why.library.state, "")) if why.library else ""]
    parts += [probe_text(why.without)] if why.without else []
    return "; ".join(part for part in parts if part)


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
