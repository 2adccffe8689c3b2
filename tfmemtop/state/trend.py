"""The use of one allocator, or of the host's memory, over time: lowest and highest in windows of time."""

from collections import deque
from dataclasses import dataclass, field, replace

SHORT_S = 1
LONG_S = 10
SHORT_KEPT = 64
LONG_KEPT = 180
"""Ten-second windows of half an hour: enough to distinguish a leak from a phase."""

FINEST_S = 0.125
"""A power of two, so that its multiples are exact: no window falls into the one before when the width doubles."""

WHOLE_KEPT = 128


@dataclass(slots=True)
class UseWindow:
    """Bytes in use from ``start`` seconds on: the lowest reading and the highest."""

    start: float
    low: int
    high: int


@dataclass(slots=True)
class Envelope:
    """Windows of ``width_s`` seconds over the whole time; the width doubles whenever there are too many."""

    windows: list[UseWindow] = field(default_factory=list)
    width_s: float = FINEST_S

    def add(self, t: float, low: int, high: int) -> None:
        """Add the lowest and the highest use, in bytes, at *t* seconds."""
        _add(self.windows, self.width_s, t, low, high)
        while len(self.windows) > WHOLE_KEPT:
            fine, self.windows = self.windows, []
            self.width_s *= 2
            for window in fine:
                _add(self.windows, self.width_s, window.start, window.low, window.high)

    def copy(self) -> "Envelope":
        """Return a copy, which later additions do not change."""
        return Envelope(list(map(replace, self.windows)), self.width_s)


@dataclass(slots=True)
class Trend:
    """Windows of one second for the last minute, of ten for the last half hour, and those of the ``whole`` time.

    ``end`` is the time of the last reading. ``peak`` is the highest ever; it is kept here because a script may reset
    TensorFlow's own peak (``reset_memory_stats``).
    """

    short: deque[UseWindow] = field(default_factory=lambda: deque(maxlen=SHORT_KEPT))
    long: deque[UseWindow] = field(default_factory=lambda: deque(maxlen=LONG_KEPT))
    whole: Envelope = field(default_factory=Envelope)
    end: float = 0.0
    peak: int = 0

    def add(self, t: float, in_use: int, high: int, peak: int | None = None) -> None:
        """Add a reading at *t* seconds: *high* is the highest since the reading before, *peak* TensorFlow's own."""
        self.end = t
        self.peak = max(self.peak, in_use, high, peak or 0)
        _add(self.short, SHORT_S, t, in_use, high)
        _add(self.long, LONG_S, t, in_use, high)
        self.whole.add(t, in_use, high)

    def highest(self, span_s: float) -> int | None:
        """Return the most bytes in use in the last *span_s* seconds, 60 at most; ``None`` if readings are too few."""
        if not self.short or self.short[0].start > self.end - span_s:
            return None
        return max(window.high for window in self.short if window.start > self.end - span_s - SHORT_S)

    def copy(self) -> "Trend":
        """Return a copy, which later additions do not change."""
        return replace(
            self,
            short=deque(map(replace, self.short), SHORT_KEPT),
            long=deque(map(replace, self.long), LONG_KEPT),
            whole=self.whole.copy(),
        )


def _add(windows: deque[UseWindow] | list[UseWindow], width_s: float, t: float, low: int, high: int) -> None:
    start = t - t % width_s
    if windows and windows[-1].start >= start:
        last = windows[-1]
        last.low, last.high = min(last.low, low), max(last.high, high, low)
    else:
        windows.append(UseWindow(start, low, max(low, high)))
