"""Why a pool has no map, no window of its allocations, or no replay, and what helps.

Most answers are the reason and the remedy, as text. The remedy is empty where nothing is known to help.
"""

from tfmemtop.events import MemoryMap, Probe, ProbeNote, ProbeState, Replayed, Unreplayed
from tfmemtop.events.damage import damage_text
from tfmemtop.findings.holders import windowless_text
from tfmemtop.findings.probe import (
    REPLAY,
    distrust_text,
    probe_remedy,
    probe_text,
    unbuilt_remedy,
    unbuilt_text,
    why_unused,
)
from tfmemtop.findings.rules.attached import NO_ALLOCATIONS
from tfmemtop.state import State
from tfmemtop.state.lookup import hooked_of, without_tensorflow
from tfmemtop.state.model import Hooked
from tfmemtop.state.pool_views import PoolKey
from tfmemtop.state.windows import missing
from tfmemtop.units import format_count, sentence

_LIBRARY = "the probe, which reads pools from inside,"
_SILENT = "the allocator cuda_malloc_async does not tell who holds its memory; TensorFlow's own, BFC, does"
_UNUSED = (ProbeState.UNAVAILABLE, ProbeState.FAILED)

_STATES = {
    ProbeState.BUILDING: f"{_LIBRARY} is being built",
    ProbeState.BUILT: "the probe waits for TensorFlow's devices",
    ProbeState.LOADING: f"{_LIBRARY} is being loaded",
    ProbeState.UNAVAILABLE: f"{_LIBRARY} cannot be built here",
    ProbeState.FAILED: f"{_LIBRARY} failed",
}


def refusal_text(event: MemoryMap) -> str:
    """Return why *event* has no map; empty where it has one."""
    if event.mapless is not None:
        return event.mapless.text.format(count=format_count(event.count or 0), detail=event.detail)
    if event.damage is not None:
        return f"the copy of this pool cannot be read: {damage_text(event.damage, event.detail)}"
    return ""


def only_tensorflow(state: State) -> str:
    """Return, as a clause, that a run's memory is that of other frameworks; empty if TensorFlow has pools in it."""
    names = " and ".join(framework.name.title for framework in without_tensorflow(state))
    return names and f"this run uses {names}; map, holders and predictions are of TensorFlow's pools only"


def no_map(state: State, key: PoolKey | None) -> tuple[str, str]:
    """Return why this pool has no map, as far as it is known: one clause without a full stop."""
    if key is None:
        unknown = "no pool is known: TensorFlow has not made one in a process that tfmemtop started"
        return only_tensorflow(state) or unknown, ""
    pid, device = key
    hooked = hooked_of(state, pid)
    if hooked is None:
        return f"nothing is known of process {pid} any more", ""
    pool = hooked.pools.get(device)
    for one in (pool.map, pool.zoom) if pool else ():
        if one is not None and one.is_missing:
            return refusal_text(one), ""
    if told := not_readable(hooked):
        return told
    without = hooked.without_probe
    if without is not None and without.distrust is not None:
        return f"maps are read in place, and that fails here: {distrust_text(without.distrust)}", ""
    if hooked.ended:
        return "the process ended before its map was read", ""
    if hooked.probe is None and without is None:
        return f"{_LIBRARY} is not in this process yet", ""
    return "no map has been read yet", ""


def not_readable(hooked: Hooked) -> tuple[str, str] | None:
    """Return why the pools of this process cannot be read, as one clause; ``None`` if nothing prevents it."""
    library, without = hooked.probe, hooked.without_probe
    direct = without is not None and without.state is ProbeState.DIRECT
    if library is None or library.state is ProbeState.LOADED or direct:
        return None
    parts = probe_text(library) or _STATES.get(library.state, ""), probe_text(without) if without else ""
    return "; ".join(filter(None, parts)), probe_remedy(library)


def no_window(state: State, key: PoolKey | None) -> tuple[str, str]:
    """Return why this pool has no window, as far as it is known, in sentences."""
    if key is None:
        return f"{sentence(no_map(state, None)[0])}.", ""
    hooked = hooked_of(state, key[0])
    if hooked is None:
        return "Nothing is known of this process any more.", ""
    if hooked.outside:
        return f"{sentence(NO_ALLOCATIONS)}.", ""
    windows, effective, library = hooked.windows.get(key[1]), hooked.effective.get(key[1]), hooked.probe
    newest = windows.newest[-1] if windows and windows.newest else None
    if newest is not None and newest.is_missing:
        return f"There is no window: {windowless_text(newest)}.", ""
    if effective is not None and effective.allocator == "cuda_malloc_async":
        return f"{sentence(_SILENT)}.", "[A] chooses BFC for the next run."
    unused = library is not None and library.state in _UNUSED
    if unused or (library is None and hooked.without_probe is not None and not hooked.ended):
        why = probe_text(library) if library else ""
        told = "Windows are recorded by the probe, a small native library, and it is not in use here"
        return f"{told}{f': {why}' if why else ''}.", probe_remedy(library) if library else ""
    by_hand = "No window is opened automatically: the session was started with --holders-interval 0."
    if hooked.ended and only_asked(state):
        return f"The process ended before a window was asked for. {by_hand}", ""
    if hooked.ended:
        return "The process ended before a window was recorded.", ""
    if library is not None and library.state.coming:
        return "Windows are recorded by the probe, a small native library. It is being built or loaded.", ""
    text = "No window has been recorded yet. The first one comes with the first allocations."
    return by_hand if only_asked(state) else text, "[n] asks for a window now."


def unused_probe(state: State) -> Probe | None:
    """Return what is known of the probe of the first process that could not use it; ``None`` if there is none."""
    known = (process.hooked.probe for process in state.processes.values() if process.hooked is not None)
    return next((one for one in known if one is not None and one.state in _UNUSED), None)


def only_asked(state: State) -> bool:
    """Return whether the user has chosen that windows open only on request."""
    return state.session is not None and state.session.holders_interval_s == 0


def unreplayed_text(replayed: Replayed) -> str:
    """Return why there is no table: one clause, empty where there is a table."""
    if replayed.unreplayed is None:
        return ""
    if replayed.unbuilt is not None:
        return unbuilt_text(replayed.unbuilt, REPLAY)
    if replayed.unreplayed is Unreplayed.NO_ANSWER and replayed.detail:
        return f"{replayed.unreplayed.text}: {replayed.detail}"
    return replayed.unreplayed.text.format(detail=replayed.detail, count=replayed.count)


def unreplayed_remedy(replayed: Replayed) -> str:
    """Return what helps to get a table; empty where nothing is known to help."""
    return unbuilt_remedy(replayed.unbuilt) if replayed.unbuilt is not None else ""


def unrecorded(state: State) -> str:
    """Return why a recording has no allocations, and what helps: one clause, empty where it is not known."""
    if state.run is not None and state.run.outside:
        return NO_ALLOCATIONS
    if why := windowless_text(missing(state)) or why_unused(unused_probe(state)):
        return why
    hooked = [process.hooked for process in state.processes.values() if process.hooked is not None]
    if not any(one.allocators for one in hooked):
        return "no pool of TensorFlow's was seen"
    if any(pool.allocator == "cuda_malloc_async" for one in hooked for pool in one.effective.values()):
        return _SILENT
    probes = [one.probe for one in hooked if one.allocators]
    if any(probe is not None and probe.note is ProbeNote.LEFT_OUT for probe in probes):
        return "record again without --no-probe"
    if any(probe is not None and not probe.state.coming for probe in probes):
        return ""
    return "the recording ended before the probe was ready; record it again"


NOT_REPLAYED = "not replayed: TensorFlow of that version is not on this machine"
"""For a recording whose allocations cannot be replayed here."""
