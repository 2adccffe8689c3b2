"""Histories that stay bounded however long a session runs, and lose no peak.

A history holds samples: tuples of byte counts that rise from left to right, the boundaries of the
layers of a stacked bar. It keeps them at several resolutions. At each, a bucket of time has the
highest value of every boundary, so a spike of one reading survives any downsampling, and the layers
of a downsampled column still never exceed one another. It also has the sample that was valid when
the bucket began.
"""

import math
from array import array
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tfmemtop.series import Series

Sample = tuple[int, ...]

BUCKETS = 2048
"""Buckets at each resolution. As widths are four times apart, a bucket is at most 1/500 of the requested span."""
WIDTHS_S = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)
"""Bucket widths of the resolutions, in seconds: together they span 8 minutes to 97 days."""

_HIGHEST_BYTES = 2**63 - 1
_LATEST_S = 1e12
_NOTHING = -1
_FIRST_BUCKETS = 64


class _Level:
    """One resolution: a ring of buckets, in arrays, since as tuples a history would take megabytes.

    The ring grows with the number of buckets in use, so that a short session takes little memory.
    """

    __slots__ = ("before", "highest", "ids", "layers", "newest", "width_s")

    def __init__(self, width_s: float, layers: int) -> None:
        self.width_s = width_s
        self.layers = layers
        self.newest = -1  # number of the newest bucket
        self.ids = array("q")
        self.highest = array("q")
        self.before = array("q")  # the sample that was valid as the bucket began

    def _grow(self, slot: int) -> None:
        """Make room for *slot*."""
        missing = min(BUCKETS, max(_FIRST_BUCKETS, slot + 1, 2 * len(self.ids))) - len(self.ids)
        self.ids.extend(array("q", [-1]) * missing)
        self.highest.extend(array("q", [0]) * (missing * self.layers))
        self.before.extend(array("q", [_NOTHING]) * (missing * self.layers))

    def add(self, t: float, sample: "array[int]", before: "array[int]") -> bool:
        """Store *sample*, and *before* if a bucket begins. Return whether that changed the level."""
        bucket = int(t / self.width_s)
        slot = bucket % BUCKETS
        at = slot * self.layers
        if bucket == self.newest:
            highest, higher = self.highest, False
            for offset, size in enumerate(sample, at):
                if size > highest[offset]:
                    highest[offset] = size
                    higher = True
            return higher
        if slot >= len(self.ids):
            self._grow(slot)
        self.newest = self.ids[slot] = bucket
        self.highest[at : at + self.layers] = sample
        self.before[at : at + self.layers] = before
        return True


class History:
    """Samples over time, all with the same number of boundaries. Memory is bounded; adding takes constant time."""

    __slots__ = ("_latest", "_levels", "end")

    def __init__(self) -> None:
        self._levels: list[_Level] = []
        self._latest: Sample | None = None
        self.end: float | None = None

    def add(self, t: float, sample: Sample) -> None:
        """Store the sample that was read at *t* seconds; a time before the newest counts as the newest.

        Raises:
            ValueError: *sample* has another number of boundaries than the samples before.
        """
        if not self._levels:
            self._levels = [_Level(width, len(sample)) for width in WIDTHS_S]
        elif len(sample) != self._levels[0].layers:
            raise ValueError(len(sample), self._levels[0].layers)
        if sample[0] < 0 or sample[-1] > _HIGHEST_BYTES:
            sample = tuple(min(max(size, 0), _HIGHEST_BYTES) for size in sample)
        t = self.end = min(max(t, self.end or 0.0), _LATEST_S)
        cells, before = array("q", sample), array("q", self._latest or (_NOTHING,) * len(sample))
        for level in self._levels:
            if not level.add(t, cells, before):
                break  # a sample that is not higher in this bucket is not higher in the wider ones that contain it
        self._latest = sample

    def last(self, span_s: float) -> "History":
        """Return a copy of the last *span_s* seconds, at the finest resolution that reaches back so far.

        Later samples do not make the copy coarser and drop nothing of it. It serves to keep a run that has ended.
        """
        kept = History()
        kept._latest, kept.end = self._latest, self.end
        kept._levels = [deepcopy(self._level(span_s))] if self._levels else []
        return kept

    @staticmethod
    def newest_column(width_s: float, end: float) -> int:
        """Return the number of the column of *width_s* seconds that contains the time *end*; column 0 begins at 0."""
        return int(min(end, _LATEST_S) / width_s)

    def _level(self, span_s: float) -> _Level:
        """Return the finest resolution that reaches back *span_s* seconds, with a spare bucket at either end."""
        found = (level for level in self._levels if level.width_s * (BUCKETS - 2) >= span_s)
        return next(found, self._levels[-1])

    def complete_before(self, span_s: float, width_s: float, end: float) -> int:
        """Return a number: columns with a lower number no longer change once the time is *end*."""
        bucket_s = self._level(span_s + width_s).width_s if self._levels else WIDTHS_S[-1]
        return int(int(min(end, _LATEST_S) / bucket_s) * bucket_s / width_s)

    def read(self, span_s: float, width_s: float, first: int, stop: int, since: float = 0.0) -> list[Sample | None]:
        """Return columns number *first* to *stop* (excluded) of *width_s* seconds, of a graph that spans *span_s*.

        A bucket of time that overlaps several columns counts in each of them. Samples before the time *since* count in
        none.
        """
        columns: list[Sample | None] = [None] * max(0, stop - first)
        if not self._levels:
            return columns
        level = self._level(span_s + width_s)
        bucket_s, layers, ids, highest = level.width_s, level.layers, level.ids, level.highest
        oldest = max(level.newest - BUCKETS + 1, int(first * width_s / bucket_s) - 1, math.ceil(since / bucket_s), 0)
        filled = max(
            0, math.ceil(since / width_s) - first
        )  # columns before this index are final: they have a value, or stay ``None``
        for bucket in range(oldest, level.newest + 1):
            slot = bucket % BUCKETS
            if slot >= len(ids) or ids[slot] != bucket:
                continue
            begin = int(bucket * bucket_s / width_s) - first
            if begin >= len(columns):
                held = _sample(level.before, slot, layers)
                columns[filled:] = [held] * (len(columns) - filled)
                return columns
            end = min(max(begin, -int(-(bucket + 1) * bucket_s // width_s) - 1 - first), len(columns) - 1)
            if end < 0:
                continue
            if begin > filled:
                held = _sample(level.before, slot, layers)
                columns[filled:begin] = [held] * (begin - filled)
            sample = tuple(highest[slot * layers : (slot + 1) * layers])
            for index in range(max(begin, 0), end + 1):
                known = columns[index]
                columns[index] = sample if known is None or index >= filled else tuple(map(max, known, sample))
            filled = max(filled, end + 1)
        columns[filled:] = [self._latest] * (len(columns) - filled)
        return columns


def _sample(cells: Sequence[int], slot: int, layers: int) -> Sample | None:
    sample = tuple(cells[slot * layers : (slot + 1) * layers])
    return None if sample[0] == _NOTHING else sample


CELLS = 1024  # of a curve
FIRST_WIDTH_S = 0.125  # a power of two, as a series needs it


def _highest(a: Sample, b: Sample) -> Sample:
    return tuple(map(max, a, b))


class Curve:
    """One run's samples over the seconds since it began, to be drawn together with other runs.

    Of a stretch of time the highest values stay, so no peak is lost.
    """

    __slots__ = ("_samples", "end")

    def __init__(self) -> None:
        self._samples = Series(_highest, FIRST_WIDTH_S, CELLS)
        self.end = 0.0

    @property
    def width_s(self) -> float:
        """The seconds of one stretch of time."""
        return self._samples.width_s

    def add(self, t: float, sample: Sample) -> None:
        """Add a sample that was read *t* seconds after the start; a time before the newest counts as the newest."""
        self.end = max(self.end, t)
        self._samples.add(self.end, tuple(min(max(size, 0), _HIGHEST_BYTES) for size in sample))

    def columns(self, width_s: float, count: int, boundary: int) -> list[int | None]:
        """Return the highest value of a *boundary* in each of *count* columns of *width_s* seconds, from the start on.

        It is ``None`` before the first reading and after the last.
        """
        return [self.between(column * width_s, (column + 1) * width_s, boundary) for column in range(count)]

    def highest(self, boundary: int, until: float | None = None) -> int | None:
        """Return the highest value of a *boundary* before *until* seconds, or of the whole run without *until*.

        The stretch that contains *until* does not count. Return ``None`` if nothing was read.
        """
        if until is None:
            return max((sample[boundary] for sample in self._samples.windows), default=None)
        samples = self._samples.within(0, int(until / self.width_s))
        return max((sample[boundary] for sample in samples), default=None)

    def between(self, begin: float, end: float, boundary: int) -> int | None:
        """Return the highest value of a *boundary* from *begin* to *end* seconds; ``None`` if nothing was read."""
        first = int(max(0.0, begin) / self.width_s)
        samples = self._samples.within(first, max(first + 1, int(end / self.width_s)))
        return max((sample[boundary] for sample in samples), default=None)

    @property
    def begin(self) -> float | None:
        """Seconds from the start until the run first had memory; ``None`` if it never had any."""
        numbered = zip(self._samples.numbers, self._samples.windows, strict=True)
        return next((number * self.width_s for number, sample in numbered if sample[-1] > 0), None)


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

    ``end`` is the time of the last reading. ``peak`` is the highest ever, first read at ``reached``; it is kept here
    because a script may reset TensorFlow's own peak (``reset_memory_stats``).
    """

    short: Series[UseWindow] = msgspec.field(default_factory=partial(Series, merge, SHORT_S, SHORT_KEPT, rolling=True))
    long: Series[UseWindow] = msgspec.field(default_factory=partial(Series, merge, LONG_S, LONG_KEPT, rolling=True))
    whole: Series[UseWindow] = msgspec.field(default_factory=whole_use)
    end: float = 0.0
    peak: int = 0
    reached: float = 0.0

    def add(self, t: float, in_use: int, high: int, peak: int | None = None) -> None:
        """Add a reading at *t* seconds: *high* is the highest since the reading before, *peak* TensorFlow's own."""
        self.end = t
        if (highest := max(in_use, high, peak or 0)) > self.peak:
            self.peak, self.reached = highest, t
        reading = UseWindow(t, in_use, max(in_use, high))
        for series in (self.short, self.long, self.whole):
            series.add(t, reading)

    def highest(self, since: float) -> int | None:
        """Return the most bytes in use since *since* seconds, two minutes ago at most; ``None`` if nothing was read."""
        return max((window.high for window in self.short.windows if window.start > since - SHORT_S), default=None)

    def copy(self) -> "Trend":
        """Return a copy, which later additions do not change."""
        return replace(self, short=self.short.copy(), long=self.long.copy(), whole=self.whole.copy())
