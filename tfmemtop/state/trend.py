"""How the use of one allocator, or of the host's memory, went: its lowest and highest in windows of time."""

from collections import deque
from dataclasses import dataclass, field, replace

SHORT_S = 1
LONG_S = 10
SHORT_KEPT = 64
LONG_KEPT = 180
"""Ten-second windows of half an hour: enough to tell a leak from a phase."""

FINEST_S = 0.125
"""A power of two, whose multiples are exact: no window slips into the one before when the width doubles."""

WHOLE_KEPT = 128


@dataclass(slots=True)
class Window:
    """Bytes in use from ``start`` seconds on: the lowest reading and the highest."""

    start: float
    low: int
    high: int


@dataclass(slots=True)
class Course:
    """Windows of ``width_s`` seconds for all the time; the width doubles whenever there are too many."""

    windows: list[Window] = field(default_factory=list)
    width_s: float = FINEST_S

    def add(self, t: float, low: int, high: int) -> None:
        """Take in the lowest and the highest use at *t* seconds."""
        _add(self.windows, self.width_s, t, low, high)
        while len(self.windows) > WHOLE_KEPT:
            fine, self.windows = self.windows, []
            self.width_s *= 2
            for window in fine:
                _add(self.windows, self.width_s, window.start, window.low, window.high)

    def copy(self) -> "Course":
        """As it is now, whatever is added later."""
        return Course(list(map(replace, self.windows)), self.width_s)


@dataclass(slots=True)
class Trend:
    """Windows of one second for the last minute, of ten for the last half hour, and those of the ``whole`` time.

    ``end`` is the last reading's time, ``peak`` the highest ever: a script may have TensorFlow forget its own peak
    (``reset_memory_stats``).
    """

    short: deque[Window] = field(default_factory=lambda: deque(maxlen=SHORT_KEPT))
    long: deque[Window] = field(default_factory=lambda: deque(maxlen=LONG_KEPT))
    whole: Course = field(default_factory=Course)
    end: float = 0.0
    peak: int = 0

    def add(self, t: float, in_use: int, high: int, peak: int | None = None) -> None:
        """Take in a reading at *t* seconds; *high* is the highest since the one before, *peak* TensorFlow's own."""
        self.end = t
        self.peak = max(self.peak, in_use, high, peak or 0)
        _add(self.short, SHORT_S, t, in_use, high)
        _add(self.long, LONG_S, t, in_use, high)
        self.whole.add(t, in_use, high)

    def highest(self, span_s: float) -> int | None:
        """The most in use in the last *span_s* seconds of readings, a minute at most; ``None`` if there are fewer."""
        if not self.short or self.short[0].start > self.end - span_s:
            return None
        return max(window.high for window in self.short if window.start > self.end - span_s - SHORT_S)

    def copy(self) -> "Trend":
        """As it is now, whatever is added later."""
        return replace(
            self,
            short=deque(map(replace, self.short), SHORT_KEPT),
            long=deque(map(replace, self.long), LONG_KEPT),
            whole=self.whole.copy(),
        )


def _add(windows: deque[Window] | list[Window], width_s: float, t: float, low: int, high: int) -> None:
    start = t - t % width_s
    if windows and windows[-1].start >= start:
        last = windows[-1]
        last.low, last.high = min(last.low, low), max(last.high, high, low)
    else:
        windows.append(Window(start, low, max(low, high)))
