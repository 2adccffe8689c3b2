"""Views of a pool's holders: its windows, what their events did, their buffers. Pure."""

from functools import lru_cache

import msgspec
from msgspec.structs import asdict

from tfmemtop import events
from tfmemtop.events import Holders
from tfmemtop.events.allocations import FOREVER
from tfmemtop.state.attribution import attribution
from tfmemtop.state.holders import By, Part, Standing, StepSlice, course, slices, standing
from tfmemtop.state.lookup import began, hooked_of
from tfmemtop.state.model import Hooked, State
from tfmemtop.state.pool_views import PoolKey, pools
from tfmemtop.state.windows import REMEMBERED, chosen, recorded, times_us, unpacked


class Happened(msgspec.Struct, frozen=True):
    """What an event did: ``operation`` allocated ``change`` bytes, or freed them if ``change`` is below 0."""

    operation: str | None
    change: int


def hooked_at(state: State, key: PoolKey | None) -> Hooked | None:
    """Return the hook's data of the process of the pool *key*; ``None`` if there is none."""
    return hooked_of(state, key[0]) if key else None


def pools_with_holders(state: State) -> list[PoolKey]:
    """Return the keys of all pools, first of those that have a window."""
    known = pools(state)
    for pid, process in state.processes.items():
        if process.hooked:
            known += [(pid, device) for device in process.hooked.windows if (pid, device) not in known]
    return sorted(known, key=lambda key: not windows(state, key))


def windows(state: State, key: PoolKey | None) -> list[events.Holders]:
    """Return the windows of a pool that are kept: the first, that of the highest peak, and the newest ones."""
    hooked = hooked_at(state, key)
    return recorded(hooked.windows.get(key[1])) if hooked and key else []


def age_s(state: State, window: events.Holders) -> float:
    """Return the seconds since *window* ended."""
    return max(0.0, state.now - window.ended)


def fullest_in(
    known: list[events.Holders], hooked: Hooked, phases: list[events.ScriptPhase]
) -> tuple[events.Holders, int] | None:
    """Return which of the windows *known*, and which event of it, has most in use in one of *phases*.

    ``None`` if nothing was recorded in them.
    """
    found = [
        (moment.total, window, moment.event)
        for window in known
        for moment in course(window, hooked)
        for at_s in (window.began + moment.at_us / 1e6,)
        if any(phase.began <= at_s and (phase.ended is None or at_s <= phase.ended) for phase in phases)
    ]
    return max(found, key=lambda one: one[0])[1:] if found else None


def since_run_s(state: State, pid: int, t: float) -> float:
    """Convert the session second *t* to seconds since the run of process *pid* began."""
    return t - began(state, pid)


def older_s(state: State, pid: int, window: events.Holders, at_s: float) -> float:
    """Return the seconds from the end of *window* to *at_s*, which counts from the start of the run of *pid*.

    They are below 0 for a window that ended later.
    """
    return at_s - since_run_s(state, pid, window.ended)


def standing_at_peak(state: State) -> Standing | None:
    """Return the holders by layer at the highest peak of the newest run; ``None`` if nothing was recorded."""
    windows = chosen(state)
    return standing(windows[0].window, windows[0].hooked, By.LAYER) if windows else None


def at_us(window: events.Holders, at: int) -> int | None:
    """Return the time of event *at*, in µs since the window began; ``None`` where that is not known."""
    if at < 0:
        return 0
    times = times_us(window)
    return times[at] if at < len(times) else None


@lru_cache(REMEMBERED)
def _events(window: events.Holders) -> dict[int, Happened]:
    found = unpacked(window)
    did: dict[int, Happened] = {}
    for holding, size, begin, end in zip(found.holdings, found.sizes, found.begins, found.ends, strict=True):
        operation = found.name(found.kinds[holding]) or None
        did[begin] = Happened(operation, size)
        if end != FOREVER:
            did[end] = Happened(operation, -size)
    did.pop(-1, None)
    return did


def happened(window: events.Holders, at: int) -> Happened | None:
    """Return what event *at* did; ``None`` if no span begins or ends at it."""
    return _events(window).get(at)


def course_slices(window: events.Holders, hooked: Hooked, count: int) -> tuple[StepSlice, ...]:
    """Return the course of *window* in *count* slices of equal time."""
    return attribution(window, hooked).once(("course", count), lambda: slices(course(window, hooked), count))


class Lifetime(msgspec.Struct, frozen=True):
    """A buffer: allocated ``from_us`` and released ``to_us`` µs into the window.

    ``from_us`` is ``None`` if it is older than the window, ``to_us`` if it is not released in the window.
    """

    part: Part
    from_us: int | None
    to_us: int | None


class Lifetimes(msgspec.Struct, frozen=True):
    """The ``buffers`` in use in a window, the largest first, over ``whole_us`` µs.

    ``peak_us`` is the moment of the peak, in µs since the window began.
    """

    buffers: tuple[Lifetime, ...]
    whole_us: int
    peak_us: int

    def cells(self, buffer: Lifetime, count: int) -> range:
        """Return in which of *count* equal parts of the window's time *buffer* is in use."""
        last = count - 1 if buffer.to_us is None else self.cell(buffer.to_us, count)
        return range(self.cell(buffer.from_us or 0, count), last + 1)

    def cell(self, at_us: int, count: int) -> int:
        """Return in which of *count* equal parts of the window's time the moment *at_us* is."""
        return max(0, -(-at_us * count // max(1, self.whole_us)) - 1)


def lifetimes(window: Holders, hooked: Hooked) -> Lifetimes:
    """Return the buffers of *window*."""
    return attribution(window, hooked).once("lifetimes", lambda: _lifetimes(window, hooked))


def _lifetimes(window: Holders, hooked: Hooked) -> Lifetimes:
    course, owners, times = unpacked(window), attribution(window, hooked), times_us(window)
    buffers = []
    for place, (begin, end) in enumerate(zip(course.begins, course.ends, strict=True)):
        if not course.addresses[place]:
            continue  # a sum of small allocations, in a recording of an older tfmemtop
        holding = course.kinds[course.holdings[place]]
        part = Part(**asdict(owners.of[place]), bytes=holding.size, requested=holding.requested, count=1)
        buffers.append(Lifetime(part, times[begin] if begin >= 0 else None, None if end == FOREVER else times[end]))
    buffers.sort(key=lambda buffer: (-buffer.part.bytes, buffer.from_us or 0))
    peak_us = times[window.peak_at] if 0 <= window.peak_at < len(times) else 0
    return Lifetimes(tuple(buffers), times[-1] if times else 0, peak_us)
