"""The use of one allocator, or of the host's memory, over time: lowest and highest in windows of time."""

from functools import partial
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tfmemtop.series import Series

SHORT_S = 1
LONG_S = 10
SHORT_KEPT = 128
LONG_KEPT = 180
"""Ten-second windows of half an hour: enough to distinguish a leak from a phase."""

FINEST_S = 0.125
WHOLE_KEPT = 128


class UseWindow(NamedTuple):
    """Bytes in use from ``start`` seconds on: the lowest reading and the highest."""

    start: float
    low: int
    high: int


def merge(a: UseWindow, b: UseWindow) -> UseWindow:
    """Return one window for both."""
    return UseWindow(a.start, min(a.low, b.low), max(a.high, b.high))


def whole_use() -> Series[UseWindow]:
    """Return an empty series for a whole session."""
    return Series(merge, FINEST_S, WHOLE_KEPT)


class Trend(msgspec.Struct):
    """Windows of one second for the last two minutes, of ten for the last half hour, and those of the ``whole`` time.

    ``end`` is the time of the last reading. ``peak`` is the highest ever; it is kept here because a script may reset
    TensorFlow's own peak (``reset_memory_stats``).
    """

    short: Series[UseWindow] = msgspec.field(default_factory=partial(Series, merge, SHORT_S, SHORT_KEPT, rolling=True))
    long: Series[UseWindow] = msgspec.field(default_factory=partial(Series, merge, LONG_S, LONG_KEPT, rolling=True))
    whole: Series[UseWindow] = msgspec.field(default_factory=whole_use)
    end: float = 0.0
    peak: int = 0

    def add(self, t: float, in_use: int, high: int, peak: int | None = None) -> None:
        """Add a reading at *t* seconds: *high* is the highest since the reading before, *peak* TensorFlow's own."""
        self.end = t
        self.peak = max(self.peak, in_use, high, peak or 0)
        reading = UseWindow(t, in_use, max(in_use, high))
        for series in (self.short, self.long, self.whole):
            series.add(t, reading)

    def highest(self, since: float) -> int | None:
        """Return the most bytes in use since *since* seconds, two minutes ago at most; ``None`` if nothing was read."""
        return max((window.high for window in self.short.windows if window.start > since - SHORT_S), default=None)

    def copy(self) -> "Trend":
        """Return a copy, which later additions do not change."""
        return replace(self, short=self.short.copy(), long=self.long.copy(), whole=self.whole.copy())
