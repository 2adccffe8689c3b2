"""Chooses for each pool the window that shows best what its memory was for. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop.events import Holders
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import Hooked, PoolWindows, State

_NEARLY, _HALF = 0.98, 0.5


@dataclass(frozen=True, slots=True)
class Chosen:
    """A window of the pool of logical device ``device`` in process ``pid``."""

    pid: int
    device: str
    window: Holders
    hooked: Hooked


def chosen(state: State) -> list[Chosen]:
    """Return, for each pool of the newest run, its best window (see :func:`_fullest`), the highest peak first."""
    found = [
        Chosen(pid, device, window, process.hooked)
        for pid, process in state.processes.items()
        if process.hooked and of_run(state, pid)
        for device, windows in process.hooked.windows.items()
        if (window := _fullest(list(recorded(windows))))
    ]
    return sorted(found, key=lambda one: -one.window.peak)


def _fullest(windows: list[Holders]) -> Holders | None:
    """Return the newest of the windows whose peak is the highest or nearly so, windows with a whole step first.

    If a window was opened within a step, much of its memory is older than the window and has no name. So windows with
    a whole step are preferred, unless their peaks are below half of the highest.
    """
    highest = max((window.peak for window in windows), default=0)
    steps = [window for window in windows if window.steps and window.peak >= _HALF * highest]
    highest = max((window.peak for window in steps), default=highest)
    near = (window for window in steps or windows if window.peak >= _NEARLY * highest)
    return max(near, key=lambda window: (bool(window.steps), window.t), default=None)


def recorded(windows: PoolWindows) -> Iterator[Holders]:
    """Yield the windows of a pool that have allocations and a peak, the oldest first."""
    first = [windows.first] if windows.first and all(windows.first is not one for one in windows.newest) else []
    yield from (window for window in (*first, *windows.newest) if not window.is_missing and window.peak)


def missing(state: State) -> Holders | None:
    """Return an event of the newest run that reports that a process has no window; ``None`` if there is none."""
    for pid, process in state.processes.items():
        if process.hooked and of_run(state, pid):
            for windows in process.hooked.windows.values():
                for window in reversed(windows.newest):
                    if window.is_missing:
                        return window
    return None
