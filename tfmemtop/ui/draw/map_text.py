"""Why a pool has no map, and what helps. Pure."""

from tfmemtop.events import Mapless, MemoryMap, ProbeState
from tfmemtop.events.damage import damage_text
from tfmemtop.findings.probe import probe_remedy, probe_text
from tfmemtop.state import State
from tfmemtop.state.lookup import device_of
from tfmemtop.state.pool_views import Missing, NoMap, PoolKey
from tfmemtop.units import format_count

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


def place(state: State, key: PoolKey) -> str:
    """Return the device's name, and the physical GPU if its number is another: ``GPU:0``, ``GPU:0 on GPU 3``."""
    device = device_of(state, *key)
    if device is None or key[1] == f"GPU:{device.info.index}":
        return key[1]
    return f"{key[1]} on GPU {device.info.index}"
