"""Tells the memory that compiled calls return, and with which XLA tries its algorithms, from what a call needs. Pure.

XLA names no operation for any of it. *places* are the spans of a window that are XLA's.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from tfmemtop.events import Holders
from tfmemtop.events.allocations import FOREVER
from tfmemtop.state.windows import WindowCourse, unpacked


def results(course: WindowCourse, places: Sequence[int]) -> set[int]:
    """Return which of the *places* live on in a later call, such as the next values of variables.

    What a call needs only while it runs is freed at its end. So a later call is one that allocates after some of XLA's
    memory was freed. What is older than the window's last step is of an earlier call.
    """
    begins = [course.begins[place] for place in places]
    ends = sorted(end for place in places if (end := course.ends[place]) != FOREVER)
    after = course.events
    found: set[int] = set()
    for place, begin in zip(places, begins, strict=True):
        freed = _next(ends, begin, after)
        later, end = _next(begins, freed, after), course.ends[place]
        if begin < 0 or (later < after and (end == FOREVER or end > later)):
            found.add(place)
    return found


def tried(course: WindowCourse, places: Sequence[int], later: Iterable[Holders]) -> set[int]:
    """Return in which of the *places* XLA tried its algorithms, while it compiled the function of a window of one step.

    A call asks for each of its buffers once, and each call for the same. What XLA tries is freed and asked for again,
    and no call in a *later* window of the function asks for as much. All that it freed by the end of that was a part of
    it. Without a later window, that is not known.
    """
    windows = [unpacked(one) for one in later]
    called = {kind.requested for one in windows for kind in one.kinds if not one.name(kind)}
    freed: dict[int, int] = {}  # by size: the first event at which it was
    until = -1
    for place in places if windows else ():
        size, begin, end = course.kinds[course.holdings[place]].requested, course.begins[place], course.ends[place]
        if begin >= 0 and end != FOREVER and size not in called:
            until = max(until, end) if freed.setdefault(size, end) < begin else until
    return {place for place in places if 0 <= course.begins[place] < course.ends[place] <= until}


def _next(events: list[int], event: int, otherwise: int) -> int:
    """Return the first of the sorted *events* that is after *event*; *otherwise* if there is none."""
    at = bisect_right(events, event)
    return events[at] if at < len(events) else otherwise
