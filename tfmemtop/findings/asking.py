"""Decide which processes are to record their allocations in a window now, so that a finding can be explained."""

from collections.abc import Iterable

from tfmemtop.events import Event
from tfmemtop.events.device_names import DeviceKind
from tfmemtop.findings.finding import Finding
from tfmemtop.findings.leaks import Leak, leak
from tfmemtop.findings.places import Place
from tfmemtop.findings.pool import FragmentedPool, fragmented
from tfmemtop.findings.rules import follow_rule
from tfmemtop.findings.run_devices import RunDevice, run_devices
from tfmemtop.state import State
from tfmemtop.state.fold import apply
from tfmemtop.state.holder_choice import recorded

AGAIN_S = 20.0
"""Seconds between two windows of one process that serve findings. Two windows are needed to show what grows."""

_LOOK_S = 120.0
"""Seconds between two looks at the tensors of one process whose memory rises. A look costs a tenth of a second."""

_OLD_S = 60.0
"""Seconds. An older window says little about the tensors that split the pool's free memory now."""


def windows_wanted(state: State, found: Iterable[Finding]) -> list[int]:
    """Return the numbers of the processes that should record a window, given the findings *found*.

    These are processes with a leak for which no windows show what grows, and processes with a fragmented pool of which
    no window is new enough to show what lies between its free chunks.
    """
    rising = {finding.place: finding for finding in found if isinstance(finding, Leak) and not finding.ended}
    oldest = {finding.place: _OLD_S for finding in found if isinstance(finding, FragmentedPool)}
    oldest |= {place: AGAIN_S for place, finding in rising.items() if finding.grown is None}
    devices = [*run_devices(state), *run_devices(state, DeviceKind.CPU)]
    wanted = {device.pid: None for device in devices if device.place in oldest and _lacks(state, device, oldest)}
    wanted |= {device.pid: None for device in devices if device.place in rising and _unlooked(state, device)}
    return list(wanted)


def _unlooked(state: State, device: RunDevice) -> bool:
    """Return whether the process was not searched for who holds its tensors lately."""
    look = device.hooked.look
    return not device.hooked.ended and (look is None or state.now - look.t > _LOOK_S)


def _lacks(state: State, device: RunDevice, oldest: dict[Place, float]) -> bool:
    """Return whether *device* can have windows, and its newest one is older than *oldest* allows."""
    windows = device.hooked.windows.get(device.name)
    if windows is None or device.hooked.ended:
        return False  # there was no window at the start either, so the process cannot record any
    newest = max((window.ended for window in recorded(windows)), default=None)
    return newest is not None and state.now - newest > oldest[device.place]


class WindowWishes:
    """Decides from the stream of events when to request windows: for each process at most once in ``AGAIN_S``."""

    def __init__(self) -> None:
        self._state = State()
        self._asked: dict[int, float] = {}  # by process: when its last window was requested, in seconds of the session

    def due(self, events: Iterable[Event]) -> list[int]:
        """Take in *events*, and return the numbers of the processes of which to request a window now."""
        for event in events:
            apply(self._state, event)
        state = self._state
        wanted = [
            pid
            for pid in windows_wanted(state, [*follow_rule(leak, state), *follow_rule(fragmented, state)])
            if state.now - self._asked.get(pid, float("-inf")) >= AGAIN_S
        ]
        self._asked |= dict.fromkeys(wanted, state.now)
        return wanted
