"""Which findings would say more if allocations were recorded now."""

from collections.abc import Iterable

from tfmemtop.rules.finding import Finding, Place
from tfmemtop.rules.leaks import Leak
from tfmemtop.rules.pool import FragmentedPool
from tfmemtop.rules.run_devices import RunDevice, run_devices
from tfmemtop.state import State
from tfmemtop.state.holder_choice import told

AGAIN_S = 20.0
"""Between two windows for findings about one process. What grows shows in two of them."""

_OLD_S = 60.0
"""A window that is older says little of who keeps a pool in pieces now."""


def windows_wanted(state: State, found: Iterable[Finding]) -> list[int]:
    """The processes of which a window is wanted.

    They are those with a leak of which no windows tell who grows, and those with a fragmented pool of which no window
    is new enough to tell who lies between its free chunks.
    """
    oldest = {finding.place: AGAIN_S for finding in found if isinstance(finding, Leak) and _unexplained(finding)}
    oldest |= {finding.place: _OLD_S for finding in found if isinstance(finding, FragmentedPool)} | oldest
    devices = [*run_devices(state), *run_devices(state, "CPU")]
    wanted = {device.pid: None for device in devices if device.place in oldest and _lacks(state, device, oldest)}
    return list(wanted)


def _unexplained(leak: Leak) -> bool:
    return leak.grown is None and not leak.ended


def _lacks(state: State, device: RunDevice, oldest: dict[Place, float]) -> bool:
    """Whether windows can be had, and the newest is older than it may be."""
    windows = device.hooked.windows.get(device.name)
    if windows is None or device.hooked.ended:
        return False  # there was none of the start either: none can be had
    newest = max((window.ended for window in told(windows)), default=None)
    return newest is not None and state.now - newest > oldest[device.place]
