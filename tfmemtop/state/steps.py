"""The progress of a process: the calls and tracings of its functions over time, and the steps of the busiest one."""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import msgspec

from tfmemtop import events
from tfmemtop.series import Series, earlier

RECENT_S = 30.0
"""The stretch of time over which the present pace is computed."""
TRACES_S = 60.0
"""The time for which a tracing counts as recent."""
_STALLED_S = 3.0
_SHORTEST_S = 0.9
_KEPT = 64
_WHOLE_KEPT = 128
_FINEST_S = 0.125
_FUNCTIONS_KEPT = 256

Key = tuple[str, str, int]


class Count(msgspec.Struct):
    """The calls and tracings of one function up to ``t`` seconds."""

    t: float
    calls: int
    traces: int


class FunctionCounts(msgspec.Struct):
    """The counts of one function over time. ``first`` is the first count, ``last`` the newest one that changed."""

    function: events.Traced
    first: Count
    last: Count
    recent: deque[Count] = msgspec.field(default_factory=lambda: deque(maxlen=_KEPT))  # of a minute, and one before
    whole: Series[Count] = msgspec.field(default_factory=partial(Series, earlier, _FINEST_S, _WHOLE_KEPT))

    def add(self, t: float, function: events.Traced) -> None:
        """Add the counts that were read at *t* seconds."""
        self.function = function
        if (function.calls, function.traces) != (self.last.calls, self.last.traces):
            self.last = Count(t, function.calls, function.traces)
            self.recent.append(self.last)
            self.whole.add(t, self.last)
        while len(self.recent) > 2 and self.recent[1].t < t - TRACES_S:
            self.recent.popleft()

    def calls_at(self, *times: float) -> list[float]:
        """Return the calls made up to each of *times* in seconds, interpolated evenly between two counts."""
        counts = sorted([self.first, *self.whole.windows, *self.recent, self.last], key=lambda count: count.t)
        found: list[float] = []
        for t in times:
            at = bisect_right(counts, t, key=lambda count: count.t)
            before, after = counts[max(0, at - 1)], counts[min(at, len(counts) - 1)]
            share = (t - before.t) / (after.t - before.t) if after.t > before.t else 0.0
            found.append(before.calls + (after.calls - before.calls) * share)
        return found

    def time_of(self, calls: float) -> float:
        """Return the time at which *calls* calls had been made, interpolated between the first and the last count."""
        counts = [self.first, *self.whole.windows, self.last]
        after = next((count for count in counts if count.calls >= calls), self.last)
        before = next((count for count in reversed(counts) if count.calls <= calls), self.first)
        if after.calls <= before.calls:
            return min(before.t, after.t)
        return before.t + (after.t - before.t) * (calls - before.calls) / (after.calls - before.calls)

    def before(self, t: float) -> Count:
        """Return the newest recent count that is not later than *t* seconds, else the oldest one."""
        return next((count for count in reversed(self.recent) if count.t <= t), self.recent[0])


class Steps(msgspec.Struct):
    """All functions of one process by name, file and line.

    ``first_step`` is the time at which the first call of a function was found to be complete.
    """

    courses: dict[Key, FunctionCounts] = msgspec.field(default_factory=dict)
    first_step: float | None = None

    def add(self, event: events.Functions) -> None:
        """Add the counts of an event."""
        for function in event.functions:
            key = function.name, function.file, function.line
            course = self.courses.get(key)
            if course is not None:
                course.add(event.t, function)
            elif len(self.courses) < _FUNCTIONS_KEPT:
                count = Count(event.t, function.calls, function.traces)
                self.courses[key] = FunctionCounts(function, count, count, deque([count], maxlen=_KEPT))
        if self.first_step is None and any(function.calls for function in event.functions):
            self.first_step = event.t

    def summary(self) -> "Steps":
        """Return what a run that has ended still needs: the counts of its busiest function, for the pace of the run."""
        key = max(self.courses, key=lambda key: self.courses[key].last.calls, default=None)
        return Steps({} if key is None else {key: self.courses[key]}, self.first_step)

    @property
    def busiest(self) -> FunctionCounts | None:
        """The function that was called most often: one call of it is taken for a step."""
        return max(self.courses.values(), key=lambda course: course.last.calls, default=None)

    @property
    def compiles(self) -> bool:
        """Whether XLA compiles one of the functions."""
        return any(course.function.compiled for course in self.courses.values())

    def is_compiled(self, name: str) -> bool:
        """Return whether XLA compiles a function of that *name*."""
        return any(course.function.compiled for course in self.courses.values() if course.function.name == name)

    def made(self, start: float, end: float) -> tuple[float, str]:
        """Return how many steps the process made between two times in seconds, and their unit.

        The unit is ``calls`` where it is not known how many steps one call takes.
        """
        course = self.busiest
        if course is None:
            return 0.0, "steps"
        before, after = course.calls_at(start, end)
        calls = after - before
        each = course.function.steps
        return (calls, "calls") if each is None else (calls * each, "steps")

    def seconds_a_step(self, times: Sequence[float]) -> list[float | None]:
        """Return the seconds that a step took between each two of *times*; ``None`` where none was made."""
        course = self.busiest
        if course is None:
            return [None] * (len(times) - 1)
        made = [(after - before) * (course.function.steps or 1) for before, after in pairwise(course.calls_at(*times))]
        return [(b - a) / steps if steps else None for (a, b), steps in zip(pairwise(times), made, strict=True)]

    @property
    def calls(self) -> int:
        """Calls of the busiest function."""
        busiest = self.busiest
        return busiest.last.calls if busiest else 0


class StepRate(msgspec.Struct, frozen=True):
    """Steps of the busiest function, or its calls where the steps of a call are not known (``unit``).

    ``recent`` and ``whole`` are steps a second, over the last 30 s and from the first count to the newest. They are
    ``None`` if the counted time is too short.
    """

    unit: str
    count: int
    recent: float | None
    whole: float | None


def pace(steps: Steps, now: float) -> StepRate | None:
    """Return the pace at *now* seconds; ``None`` before the first call."""
    course = steps.busiest
    if course is None or not course.last.calls:
        return None
    each = course.function.steps
    factor = each or 1
    since = course.before(max(course.first.t, now - RECENT_S))
    # While calls go on, the pace is up to the newest count. Once they have stopped, it falls as time passes.
    until = course.last.t if now - course.last.t < _STALLED_S else now
    return StepRate(
        "calls" if each is None else "steps",
        course.last.calls * factor,
        _rate(course.last.calls - since.calls, until - since.t, factor),
        _rate(course.last.calls - course.first.calls, course.last.t - course.first.t, factor),
    )


def _rate(calls: int, span_s: float, factor: int) -> float | None:
    return calls * factor / span_s if span_s >= _SHORTEST_S else None
