"""Who keeps memory that has been rising, and has not yet filled its pool. Pure."""

from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.contents import FULLER
from tfmemtop.findings.keepers import keeper
from tfmemtop.findings.rising import (
    HALF,
    comes_again,
    has_stopped,
    larger_each_time,
    of_rounds,
    rise_until,
    risen,
    settled,
    still_rises,
)
from tfmemtop.findings.scene import Need, Scene
from tfmemtop.state import State
from tfmemtop.state.history import Trend
from tfmemtop.state.inventory import inventory
from tfmemtop.state.lookup import once_per_revision
from tfmemtop.state.model import Hooked
from tfmemtop.units import MIB

_AT_LEAST, _SHARE = 16 * MIB, 0.1
"""The least rise that is told, in bytes and as a share of what is in use."""


@once_per_revision
def rising(state: State) -> dict[tuple[int, str], Cause]:
    """Return, by process and device, who keeps memory that has been rising and has not yet filled its pool."""
    found: dict[tuple[int, str], Cause] = {}
    run = state.run
    for pid, process in state.processes.items():
        hooked = process.hooked
        if hooked is None or run is None or process.seen.run != run.run:
            continue
        for device, trend in hooked.trends.items():
            cause = None if hooked.failure else cause_of_rise(hooked, device, trend)
            if cause is not None:
                found[pid, device] = cause
    return found


def cause_of_rise(hooked: Hooked, device: str, trend: Trend) -> Cause | None:
    """Return who keeps the memory by which *trend* has risen; ``None`` if it does not rise, or nobody is known."""
    windows = settled(trend.whole.windows)
    kept = settled(windows, of_rounds(windows))
    rose = risen(kept, HALF)
    limit = hooked.allocators[device].limit if device in hooked.allocators else None
    waits = limit is not None and trend.peak >= FULLER * limit
    goes_on = still_rises(kept) or waits or (not hooked.ended and comes_again(windows))
    if rose < _AT_LEAST or not goes_on:
        return None
    if not hooked.ended and has_stopped(windows[int(len(windows) * HALF) :], limit):
        return None
    look = hooked.look
    # What the script holds is known at the time of the look; what TensorFlow does, at the end too.
    t = look.t if look is not None and look.tensors is not None else trend.end
    near = min(trend.whole.windows, key=lambda window: abs(window.start - t))
    if rose < _SHARE * near.high:
        return None
    need = Need(0, None, False, rose, rise_until([trend.whole.windows]) is not None)
    scene = Scene(inventory(hooked, device, near.high, t), need, hooked, seen_s=trend.end - t)
    cause = keeper(scene) or larger_each_time(scene, rose)
    return None if cause is not None and cause.key is Key.STEP_LARGER else cause  # a step may free that at its end
