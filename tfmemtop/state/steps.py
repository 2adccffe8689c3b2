"""How a process gets on: its functions' calls and tracings over time, and the steps of the busiest."""

from collections import deque
from dataclasses import dataclass, field

from tfmemtop import events

RECENT_S = 30.0
"""The stretch of time over which the present pace is taken."""
TRACES_S = 60.0
"""For how long a tracing counts as recent."""
_STALLED_S = 3.0
_SHORTEST_S = 0.9
_KEPT = 64
_WHOLE_KEPT = 128
_FUNCTIONS_KEPT = 256

Key = tuple[str, str, int]


@dataclass(slots=True)
class Count:
    """Of one function at ``t`` seconds: calls and tracings so far."""

    t: float
    calls: int
    traces: int


@dataclass(slots=True)
class Course:
    """How one function was called. ``first`` is the first count there was, ``last`` the newest that changed."""

    function: events.Traced
    first: Count
    last: Count
    recent: deque[Count] = field(default_factory=lambda: deque(maxlen=_KEPT))  # a minute, and one from before
    whole: list[Count] = field(default_factory=list)  # from the first on, ever further apart
    _apart: int = 1
    _skipped: int = 0

    def add(self, t: float, function: events.Traced) -> None:
        """Take in the counts read at *t* seconds."""
        self.function = function
        if (function.calls, function.traces) != (self.last.calls, self.last.traces):
            self.last = Count(t, function.calls, function.traces)
            self.recent.append(self.last)
            self._remember()
        while len(self.recent) > 2 and self.recent[1].t < t - TRACES_S:
            self.recent.popleft()

    def _remember(self) -> None:
        """Keep each so many counts of the whole time, and fewer of them whenever there are too many."""
        self._skipped += 1
        if self._skipped >= self._apart:
            self._skipped = 0
            self.whole.append(self.last)
        if len(self.whole) > _WHOLE_KEPT:
            del self.whole[1::2]
            self._apart *= 2

    def calls_at(self, t: float) -> float:
        """Calls so far at *t* seconds, between two counts as if they were made evenly."""
        counts = [self.first, *self.whole, self.last]
        after = next((count for count in counts if count.t >= t), self.last)
        before = next((count for count in reversed(counts) if count.t <= t), self.first)
        if after.t <= before.t:
            return before.calls
        return before.calls + (after.calls - before.calls) * (t - before.t) / (after.t - before.t)

    def time_of(self, calls: float) -> float:
        """When so many calls had been made, likewise; the time of the first or of the last count beyond those."""
        counts = [self.first, *self.whole, self.last]
        after = next((count for count in counts if count.calls >= calls), self.last)
        before = next((count for count in reversed(counts) if count.calls <= calls), self.first)
        if after.calls <= before.calls:
            return min(before.t, after.t)
        return before.t + (after.t - before.t) * (calls - before.calls) / (after.calls - before.calls)

    def before(self, t: float) -> Count:
        """The newest kept count that is no later than *t* seconds, else the oldest."""
        return next((count for count in reversed(self.recent) if count.t <= t), self.recent[0])


@dataclass(slots=True)
class Steps:
    """All functions of one process by name, file and line; ``first_step`` is when one had first been called through."""

    courses: dict[Key, Course] = field(default_factory=dict)
    first_step: float | None = None

    def add(self, event: events.Functions) -> None:
        """Take in an event."""
        for function in event.functions:
            key = function.name, function.file, function.line
            course = self.courses.get(key)
            if course is not None:
                course.add(event.t, function)
            elif len(self.courses) < _FUNCTIONS_KEPT:
                count = Count(event.t, function.calls, function.traces)
                self.courses[key] = Course(function, count, count, deque([count], maxlen=_KEPT))
        if self.first_step is None and any(function.calls for function in event.functions):
            self.first_step = event.t

    def summary(self) -> "Steps":
        """Only what a run that is over still needs: its busiest function's counts, for the pace of the whole."""
        key = max(self.courses, key=lambda key: self.courses[key].last.calls, default=None)
        return Steps({} if key is None else {key: self.courses[key]}, self.first_step)

    @property
    def busiest(self) -> Course | None:
        """The function called most often: what it does once is taken for a step."""
        return max(self.courses.values(), key=lambda course: course.last.calls, default=None)

    @property
    def calls(self) -> int:
        """Calls of the busiest function."""
        busiest = self.busiest
        return busiest.last.calls if busiest else 0


@dataclass(frozen=True, slots=True)
class Pace:
    """Steps of the busiest function, or its calls where their steps are not known (``unit``).

    ``recent`` and ``whole`` are a second, over the last 30 s and from the first to the newest; ``None`` if too
    few have been counted to tell.
    """

    unit: str
    count: int
    recent: float | None
    whole: float | None


def pace(steps: Steps, now: float) -> Pace | None:
    """How fast it goes at *now* seconds; ``None`` before the first call."""
    course = steps.busiest
    if course is None or not course.last.calls:
        return None
    each = course.function.steps
    factor = each or 1
    since = course.before(max(course.first.t, now - RECENT_S))
    # While calls go on, up to the newest count; once they have stopped, the pace falls with the time that goes by.
    until = course.last.t if now - course.last.t < _STALLED_S else now
    return Pace(
        "calls" if each is None else "steps",
        course.last.calls * factor,
        _rate(course.last.calls - since.calls, until - since.t, factor),
        _rate(course.last.calls - course.first.calls, course.last.t - course.first.t, factor),
    )


def _rate(calls: int, span_s: float, factor: int) -> float | None:
    return calls * factor / span_s if span_s >= _SHORTEST_S else None
