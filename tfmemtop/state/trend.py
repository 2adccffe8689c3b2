"""How the use of one allocator went: its lowest and highest in equal windows of time."""

from collections import deque
from dataclasses import dataclass, field

SHORT_S = 1
LONG_S = 10
SHORT_KEPT = 64
LONG_KEPT = 180
"""Ten-second windows of half an hour: enough to tell a leak from a phase."""


@dataclass(slots=True)
class Window:
    """Bytes in use from ``start`` seconds on: the lowest reading and the highest."""

    start: float
    low: int
    high: int


@dataclass(slots=True)
class Trend:
    """Windows of one second for the last minute, and of ten for the last half hour; ``end`` is the last reading's.

    ``peak`` is the highest ever: a script may have TensorFlow forget its own peak (``reset_memory_stats``).
    """

    short: deque[Window] = field(default_factory=lambda: deque(maxlen=SHORT_KEPT))
    long: deque[Window] = field(default_factory=lambda: deque(maxlen=LONG_KEPT))
    end: float = 0.0
    peak: int = 0

    def add(self, t: float, in_use: int, high: int, peak: int | None = None) -> None:
        """Take in a reading at *t* seconds; *high* is the highest since the one before, *peak* TensorFlow's own."""
        self.end = t
        self.peak = max(self.peak, in_use, high, peak or 0)
        for windows, width in ((self.short, SHORT_S), (self.long, LONG_S)):
            start = t - t % width
            if windows and windows[-1].start >= start:
                last = windows[-1]
                last.low, last.high = min(last.low, in_use), max(last.high, high, in_use)
            else:
                windows.append(Window(start, in_use, max(in_use, high)))

    def highest(self, span_s: float) -> int | None:
        """The most in use in the last *span_s* seconds of readings, a minute at most; ``None`` if there are fewer."""
        if not self.short or self.short[0].start > self.end - span_s:
            return None
        return max(window.high for window in self.short if window.start > self.end - span_s - SHORT_S)
