"""The windows of a pool: the allocations that are in use after each event of one, and the window of a moment. Pure.

A moment is that of the pool's highest peak, of its end, or any time.
"""

from bisect import bisect_right
from functools import cached_property, lru_cache
from itertools import accumulate

import msgspec

from tfmemtop.events import Holders, Holding, Opened
from tfmemtop.events.allocations import FOREVER, WindowAllocations, unpack
from tfmemtop.events.damage import Damaged
from tfmemtop.events.machine import is_pinned
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import Hooked, PoolWindows, State
from tfmemtop.state.operation_names import Phase, named
from tfmemtop.units import format_bytes

REMEMBERED = 8
"""The number of windows whose results are cached: those that were used last."""


class WindowCourse:
    """A window's allocations, unpacked.

    ``names``, ``kinds``, ``holdings``, ``addresses``, ``begins`` and ``ends`` are those of :class:`WindowAllocations`.
    ``times`` are the times of the events, in µs since the window began. ``events`` is the number of events. ``kept`` is
    true for allocations that outlive the beginning of the next backward pass.
    """

    def __init__(self, window: Holders) -> None:
        try:
            found = unpack(window.packed, WindowAllocations)
        except Damaged:
            found = WindowAllocations()
        if window.peak_at >= len(found.times):
            found = WindowAllocations()  # the recording was changed
        self.names, self.kinds, self.holdings = found.names, found.kinds, found.holdings
        self.addresses, self.begins, self.ends = found.addresses, found.begins, found.ends
        self.times = list(accumulate(found.times))
        self.events = len(self.times)
        self.sizes = [self.kinds[holding].size for holding in self.holdings]
        self.nobodys = max(0, window.peak - self.held(window.peak_at))
        """Bytes of the peak that belong to no span."""
        older = (place for place in self.alive(window.peak_at) if not self.kinds[self.holdings[place]].window)
        self.nameless = self.nobodys + sum(self.sizes[place] for place in older)
        """Bytes of the peak whose allocation was not recorded, in this window or another."""
        self.kept = self._kept()

    def name(self, kind: Holding) -> str:
        """Return TensorFlow's name of the operation of *kind*; empty if it has none."""
        number = kind.operation
        return self.names[number] if number is not None and 0 <= number < len(self.names) else ""

    def alive(self, at: int) -> list[int]:
        """Return the indices of the spans that are in use after event *at*."""
        return [
            place
            for place, (begin, end) in enumerate(zip(self.begins, self.ends, strict=True))
            if begin <= at and (end > at or end == FOREVER)
        ]

    def held(self, at: int) -> int:
        """Return the bytes of all spans that are in use after event *at*."""
        return sum(
            size
            for size, begin, end in zip(self.sizes, self.begins, self.ends, strict=True)
            if begin <= at and (end > at or end == FOREVER)
        )

    def last_held(self, least: int, most: int, otherwise: int) -> int:
        """Return the last event after which spans of *least* to *most* bytes were in use.

        Without one, it is the last after which there were more, and *otherwise* without one of these.
        """
        enough = [(at, held) for at, held in enumerate(self.in_use) if held >= least]
        return next((at for at, held in reversed(enough) if held <= most), enough[-1][0] if enough else otherwise)

    @cached_property
    def in_use(self) -> list[int]:
        """The bytes of all spans that are in use after each event."""
        changes = [0] * (self.events + 1)  # the first is what was in use before
        for held, begin, end in zip(self.sizes, self.begins, self.ends, strict=True):
            changes[begin + 1] += held
            if end != FOREVER:
                changes[end + 1] -= held
        return list(accumulate(changes))[1:]

    def _kept(self) -> list[bool]:
        """Return, for each span, whether it outlives the beginning of the first backward pass after its own begin."""
        of_gradients = [named(self.name(kind)).phase is Phase.BACKWARD for kind in self.kinds]
        kept: list[bool] = []
        # The next event at which gradients are allocated: `later` counts the present event, `following` does not.
        later = following = None
        at = None
        for holding, begin, end in zip(
            reversed(self.holdings), reversed(self.begins), reversed(self.ends), strict=True
        ):
            if begin != at:
                at, following = begin, later
            kept.append(following is not None and (end == FOREVER or end > following))
            if of_gradients[holding]:
                later = begin
        kept.reverse()
        return kept


@lru_cache(REMEMBERED)
def unpacked(window: Holders) -> WindowCourse:
    """Return the window's course. It has no spans if the packed fields are damaged."""
    return WindowCourse(window)


def times_us(window: Holders) -> list[int]:
    """Return the time of each event, in µs since the window began; an empty list if the times are not known."""
    return unpacked(window).times


def seconds_of(window: Holders, at: int) -> float:
    """Return the moment after event *at* of a *window* in seconds of the session."""
    times = times_us(window)
    return window.began + (times[at] / 1e6 if 0 <= at < len(times) else 0.0)


_NEARLY, _HALF = 0.98, 0.5


class Chosen(msgspec.Struct, frozen=True):
    """A window of the pool of logical device ``device`` in process ``pid``."""

    pid: int
    device: str
    window: Holders
    hooked: Hooked


def chosen(state: State) -> list[Chosen]:
    """Return, for each pool of the newest run, the window of its highest peak, the highest first.

    A pool that ran out of memory comes before all others. Pools of pinned host memory come last: what is said of a run
    counts none of it. They are left out where no other pool was recorded, as with ``cuda_malloc_async``.
    """
    found = [
        Chosen(pid, device, window, process.hooked)
        for pid, process in state.processes.items()
        if process.hooked and of_run(state, pid)
        for device, windows in process.hooked.windows.items()
        if (window := fullest(recorded(windows)))
    ]
    found.sort(key=lambda one: (is_pinned(one.device), not _ran_out(one), -one.window.peak))
    return [] if found and is_pinned(found[0].device) else found


def _ran_out(one: Chosen) -> bool:
    failure = one.hooked.failure
    return failure is not None and failure.error.device == one.device


def fullest(windows: list[Holders]) -> Holders | None:
    """Return the newest of the *windows* whose peak is the highest or nearly so, windows with a whole step first.

    If a window was opened within a step, much of its memory may be older than the window and have no name. A window of
    which that is true counts only if its peak is twice as high. From the start on, everything was recorded.
    """
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
    in_use = unpacked(window).in_use
    then = range(max(0, _event(window, begin)), _event(window, end) + 1) if begin <= window.ended else ()
    return window, max(then, key=in_use.__getitem__, default=None)


def _event(window: Holders, t: float) -> int:
    """Return the number of the last event until *t* seconds of the session; -1 if there is none."""
    return bisect_right(times_us(window), round((t - window.began) * 1e6)) - 1


def higher_peak(hooked: Hooked, device: str, window: Holders) -> int | None:
    """Return the most bytes in use of the pool of *device*; ``None`` if they are shown as the peak of *window* is."""
    reading = hooked.allocators.get(device)
    peak = reading.peak if reading else None
    same = peak is None or peak <= window.peak or format_bytes(peak) == format_bytes(window.peak)
    return None if same else peak


def recorded(windows: PoolWindows | None) -> list[Holders]:
    """Return the windows of a pool that have allocations and a peak, in the order of their beginnings."""
    if windows is None:
        return []
    known = (windows.first, windows.highest, *windows.of_phases.values(), *windows.newest)
    every = {id(one): one for one in known if one is not None and not one.is_missing and one.peak}
    return sorted(every.values(), key=lambda one: one.began)


def newest(windows: PoolWindows | None, default: Holders) -> Holders:
    """Return the recorded window that ended last; *default* if there is none."""
    return max(recorded(windows), key=lambda one: one.ended, default=default)


def missing(state: State) -> Holders | None:
    """Return an event of the newest run that reports that a process has no window; ``None`` if there is none."""
    for pid, process in state.processes.items():
        if process.hooked and of_run(state, pid):
            for windows in process.hooked.windows.values():
                for window in reversed(windows.newest):
                    if window.is_missing:
                        return window
    return None
