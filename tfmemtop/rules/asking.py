"""Which findings would say more if allocations were recorded now, and which processes are to record them."""

from collections.abc import Iterable

from tfmemtop.events import Event
from tfmemtop.rules import follow_rule
from tfmemtop.rules.finding import Finding, Place
from tfmemtop.rules.leaks import Leak, leak
from tfmemtop.rules.pool import FragmentedPool, fragmented
from tfmemtop.rules.run_devices import RunDevice, run_devices
from tfmemtop.state import State
from tfmemtop.state.fold import apply
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


class WindowWishes:
    """Asks for windows, so often at most for each process."""

    def __init__(self) -> None:
        self._state = State()
        self._asked: dict[int, float] = {}  # when, in seconds of the session

    def due(self, events: Iterable[Event]) -> list[int]:
        """The processes of which a window is to be asked for, now that *events* have come."""
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
