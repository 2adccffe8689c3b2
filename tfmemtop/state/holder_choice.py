"""Chooses the window of a moment: of a pool's highest peak, of its end, or of any time. Pure."""

from bisect import bisect_right

import msgspec

from tfmemtop.events import Holders, Opened
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import Hooked, PoolWindows, State
from tfmemtop.state.step_course import times_us, unpacked

_NEARLY, _HALF = 0.98, 0.5
_HIGHER = 1.05


class Chosen(msgspec.Struct, frozen=True):
    """A window of the pool of logical device ``device`` in process ``pid``."""

    pid: int
    device: str
    window: Holders
    hooked: Hooked


def chosen(state: State) -> list[Chosen]:
    """Return, for each pool of the newest run, the window of its highest peak, the highest first."""
    found = [
        Chosen(pid, device, window, process.hooked)
        for pid, process in state.processes.items()
        if process.hooked and of_run(state, pid)
        for device, windows in process.hooked.windows.items()
        if (window := fullest(recorded(windows)))
    ]
    return sorted(found, key=lambda one: -one.window.peak)


def fullest(windows: list[Holders]) -> Holders | None:
    """Return the newest of the *windows* whose peak is the highest or nearly so, windows with a whole step first.

    If a window was opened within a step, much of its memory may be older than the window and have no name. A window of
    which that is true counts only if its peak is twice as high. From the start on, everything was recorded.
    """
    windows = [window for window in windows if not window.phase]
    highest = max((window.peak for window in windows), default=0)
    told = [one for one in windows if one.peak >= _HALF * highest and _has_names(one)]
    highest = max((window.peak for window in told), default=highest)
    near = (window for window in told or windows if window.peak >= _NEARLY * highest)
    return max(near, key=lambda window: (bool(window.steps), window.t), default=None)


def _has_names(window: Holders) -> bool:
    whole = bool(window.steps) or window.opened is Opened.START
    return whole or unpacked(window).nameless <= _HALF * window.peak


def moment(windows: list[Holders], t: float | None) -> tuple[Holders, int] | None:
    """Return the window that was recorded at *t* seconds of the session, and the number of its last event until then.

    Without *t* it is the end of what was recorded. ``None`` if nothing was recorded at that time.
    """
    until = max((window.ended for window in windows), default=0.0) if t is None else t
    found = [window for window in windows if window.began <= until <= window.ended]
    window = max(found, key=lambda one: one.began, default=None)
    return None if window is None else (window, _event(window, until))


def nearest(windows: list[Holders], begin: float, end: float) -> tuple[Holders, int | None] | None:
    """Return the window that was recorded nearest to the time from *begin* to *end*, in session seconds.

    With it comes its event within that time after which most was in use; ``None`` if the window is of another time.
    Without windows, ``None`` is returned.
    """
    window = min(windows, key=lambda one: max(one.began - end, begin - one.ended, 0.0), default=None)
    if window is None:
        return None
    in_use = unpacked(window).in_use()
    then = range(max(0, _event(window, begin)), _event(window, end) + 1) if begin <= window.ended else ()
    return window, max(then, key=in_use.__getitem__, default=None)


def _event(window: Holders, t: float) -> int:
    """Return the number of the last event until *t* seconds of the session; -1 if there is none."""
    return bisect_right(times_us(window), round((t - window.began) * 1e6)) - 1


def higher_peak(hooked: Hooked, device: str, window: Holders) -> int | None:
    """Return the highest bytes in use of the pool of *device*; ``None`` if that is the peak of *window*."""
    reading = hooked.allocators.get(device)
    peak = reading.peak if reading else None
    return None if peak is None or peak <= window.peak * _HIGHER else peak


def recorded(windows: PoolWindows | None) -> list[Holders]:
    """Return the windows of a pool that have allocations and a peak, in the order of their beginnings."""
    if windows is None:
        return []
    known = (windows.first, windows.highest, *windows.of_phases.values(), *windows.newest)
    every = {id(one): one for one in known if one is not None and not one.is_missing and one.peak}
    return sorted(every.values(), key=lambda one: one.began)


def missing(state: State) -> Holders | None:
    """Return an event of the newest run that reports that a process has no window; ``None`` if there is none."""
    for pid, process in state.processes.items():
        if process.hooked and of_run(state, pid):
            for windows in process.hooked.windows.values():
                for window in reversed(windows.newest):
                    if window.is_missing:
                        return window
    return None
