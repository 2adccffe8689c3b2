"""The reason why the holders of a pool's memory are not known."""

from enum import Enum, auto

import msgspec

from tfmemtop.events import Holders, Probe, ProbeState
from tfmemtop.state.holder_views import hooked_at, missing
from tfmemtop.state.model import Hooked, State
from tfmemtop.state.pool_views import PoolKey

_UNUSED = (ProbeState.UNAVAILABLE, ProbeState.FAILED)


class NoWindow(Enum):
    """Why a pool has no window."""

    NO_POOL = auto()
    FORGOTTEN = auto()  # the state no longer has the process
    REFUSED = auto()  # the process reported the reason: ``told``
    NOT_BFC = auto()
    NO_PROBE = auto()  # ``probe`` is what is known of the probe
    PROBE_COMING = auto()
    NOT_ASKED = auto()  # windows open only on request
    ENDED = auto()
    ENDED_NOT_ASKED = auto()  # the process has ended, and windows open only on request
    NOT_YET = auto()


class MissingWindow(msgspec.Struct, frozen=True):
    """Why a pool has no window; ``told`` is the process's own event with the reason, ``probe`` that of the probe."""

    reason: NoWindow
    told: Holders | None = None
    probe: Probe | None = None


def missing_window(state: State, key: PoolKey | None) -> MissingWindow:
    """Return the reason why this pool has no window, as far as it is known."""
    if key is None:
        return MissingWindow(NoWindow.NO_POOL)
    hooked = hooked_at(state, key)
    if hooked is None:
        return MissingWindow(NoWindow.FORGOTTEN)
    if refused := missing(state, key):
        return MissingWindow(NoWindow.REFUSED, refused)
    if _async(hooked, key[1]):
        return MissingWindow(NoWindow.NOT_BFC)
    library = hooked.probe
    if library is not None and library.state in _UNUSED:
        return MissingWindow(NoWindow.NO_PROBE, probe=library)
    if hooked.ended:
        return MissingWindow(NoWindow.ENDED_NOT_ASKED if only_asked(state) else NoWindow.ENDED)
    if library is not None and library.state.coming:
        return MissingWindow(NoWindow.PROBE_COMING)
    if library is None and hooked.without_probe is not None:
        return MissingWindow(NoWindow.NO_PROBE)
    return MissingWindow(NoWindow.NOT_ASKED if only_asked(state) else NoWindow.NOT_YET)


def unused_probe(state: State) -> Probe | None:
    """Return what is known of the probe of the first process that could not use it; ``None`` if there is none."""
    known = (process.hooked.probe for process in state.processes.values() if process.hooked is not None)
    return next((one for one in known if one is not None and one.state in _UNUSED), None)


def only_asked(state: State) -> bool:
    """Return whether the user has chosen that windows open only on request."""
    return state.session is not None and state.session.holders_interval_s == 0


def _async(hooked: Hooked, device: str) -> bool:
    effective = hooked.effective.get(device)
    return effective is not None and effective.allocator == "cuda_malloc_async"
