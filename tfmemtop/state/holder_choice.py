"""Which window tells best what a run's memory was for: of each pool, and of the fullest. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop.events import Holders
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import Hooked, State, Windows

_NEARLY, _HALF = 0.98, 0.5


@dataclass(frozen=True, slots=True)
class Chosen:
    """A window of the pool of logical device ``device`` in process ``pid``."""

    pid: int
    device: str
    window: Holders
    hooked: Hooked


def chosen(state: State) -> list[Chosen]:
    """Of each pool of the newest run the window with the highest peak, that of the fullest pool first."""
    found = [
        Chosen(pid, device, window, process.hooked)
        for pid, process in state.processes.items()
        if process.hooked and of_run(state, pid)
        for device, windows in process.hooked.windows.items()
        if (window := _fullest(list(told(windows))))
    ]
    return sorted(found, key=lambda one: -one.window.peak)


def _fullest(windows: list[Holders]) -> Holders | None:
    """The window with the highest peak; of those that nearly reach it a whole step, and of these the newest.

    Much of what a window holds that was opened within a step is older than the window, and has no name. So whole steps
    come first, unless their peaks are far lower.
    """
    highest = max((window.peak for window in windows), default=0)
    steps = [window for window in windows if window.steps and window.peak >= _HALF * highest]
    highest = max((window.peak for window in steps), default=highest)
    near = (window for window in steps or windows if window.peak >= _NEARLY * highest)
    return max(near, key=lambda window: (bool(window.steps), window.t), default=None)


def told(windows: Windows) -> Iterator[Holders]:
    """The windows of a pool that tell who holds it, the oldest first."""
    first = [windows.first] if windows.first and all(windows.first is not one for one in windows.newest) else []
    yield from (window for window in (*first, *windows.newest) if not window.is_missing and window.peak)


def missing(state: State) -> Holders | None:
    """The event by which a process of the newest run says that it has no window; ``None`` if none says so."""
    for pid, process in state.processes.items():
        if process.hooked and of_run(state, pid):
            for windows in process.hooked.windows.values():
                for window in reversed(windows.newest):
                    if window.is_missing:
                        return window
    return None
