"""Histories that stay bounded however long a session runs, and lose no peak.

A history holds samples: tuples of byte counts that rise from left to right, the boundaries of the
layers of a stacked bar. It keeps them at several resolutions; at each, a bucket of time holds the
highest of every boundary (so a spike of one reading survives any downsampling, and the layers of a
downsampled column still never exceed one another) and the sample that held when it began.
"""

from array import array
from collections.abc import Sequence

Sample = tuple[int, ...]

BUCKETS = 2048
"""Per resolution. With widths four times apart a bucket is never wider than 1/500 of the span asked for."""
WIDTHS_S = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
"""Bucket widths of the resolutions, in seconds: together they span 8 minutes to 6 days."""

_HIGHEST_BYTES = 2**63 - 1
_LATEST_S = 1e12
_NOTHING = -1


class _Level:
    """One resolution: a ring of buckets, in arrays, since as tuples a history would take megabytes."""

    __slots__ = ("before", "highest", "ids", "layers", "newest", "width_s")

    def __init__(self, width_s: float, layers: int) -> None:
        self.width_s = width_s
        self.layers = layers
        self.newest = -1  # number of the newest bucket
        self.ids = array("q", [-1]) * BUCKETS
        self.highest = array("q", [0]) * (BUCKETS * layers)
        self.before = array("q", [_NOTHING]) * (BUCKETS * layers)  # what held as the bucket began

    def add(self, t: float, sample: Sample, before: Sample | None) -> None:
        bucket = int(t / self.width_s)
        slot = bucket % BUCKETS
        at = slot * self.layers
        if bucket == self.newest:
            highest = self.highest
            for offset, size in enumerate(sample, at):
                if size > highest[offset]:
                    highest[offset] = size
            return
        self.newest = self.ids[slot] = bucket
        self.highest[at : at + self.layers] = array("q", sample)
        self.before[at : at + self.layers] = array("q", before or (_NOTHING,) * self.layers)


class History:
    """Samples over time, all with the same number of boundaries; memory is fixed, adding is constant in time."""

    __slots__ = ("_latest", "_levels", "end")

    def __init__(self) -> None:
        self._levels: list[_Level] = []
        self._latest: Sample | None = None
        self.end: float | None = None

    def add(self, t: float, sample: Sample) -> None:
        """Take in the sample read at *t* seconds; a time before the newest counts as the newest.

        Raises:
            ValueError: *sample* has another number of boundaries than those before.
        """
        if not self._levels:
            self._levels = [_Level(width, len(sample)) for width in WIDTHS_S]
        elif len(sample) != self._levels[0].layers:
            raise ValueError(f"a sample of {len(sample)} boundaries in a history of {self._levels[0].layers}")
        if sample[0] < 0 or sample[-1] > _HIGHEST_BYTES:
            sample = tuple(min(max(size, 0), _HIGHEST_BYTES) for size in sample)
        t = self.end = min(max(t, self.end or 0.0), _LATEST_S)
        for level in self._levels:
            level.add(t, sample, self._latest)
        self._latest = sample

    def columns(self, span_s: float, count: int, end: float) -> list[Sample | None]:
        """The last *span_s* seconds before *end* as *count* columns, oldest first.

        A column holds the highest of each boundary in its time, or, where nothing was read in it,
        the last sample before; ``None`` before the first. Column borders are multiples of the
        column's width, so that a column once complete stays as it is while the graph moves on.
        """
        if count <= 0:
            return []
        stop = self.newest_column(span_s / count, end) + 1
        return self.read(span_s, span_s / count, stop - count, stop)

    @staticmethod
    def newest_column(width_s: float, end: float) -> int:
        """Number of the column of *width_s* seconds that the time *end* lies in; column 0 begins at 0."""
        return int(min(end, _LATEST_S) / width_s)

    def complete_before(self, span_s: float, width_s: float, end: float) -> int:
        """Columns with a number below this no longer change once the time is *end*."""
        bucket_s = _bucket_width(span_s + width_s)
        return int(int(min(end, _LATEST_S) / bucket_s) * bucket_s / width_s)

    def read(self, span_s: float, width_s: float, first: int, stop: int) -> list[Sample | None]:
        """Columns number *first* to *stop* (excluded) of *width_s* seconds, of a graph that spans *span_s*.

        A bucket of time that lies over several columns counts in each of them.
        """
        columns: list[Sample | None] = [None] * max(0, stop - first)
        bucket_s = _bucket_width(span_s + width_s)
        level = next((level for level in self._levels if level.width_s == bucket_s), None)
        if level is None:
            return columns
        layers, ids, highest = level.layers, level.ids, level.highest
        oldest = max(level.newest - BUCKETS + 1, int(first * width_s / bucket_s) - 1, 0)
        filled = 0  # columns before this index have their value, or are what `columns` began with
        for bucket in range(oldest, level.newest + 1):
            slot = bucket % BUCKETS
            if ids[slot] != bucket:
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


def _bucket_width(span_s: float) -> float:
    """Width of the finest buckets that reach back *span_s* seconds, with one to spare at either end."""
    return next((width for width in WIDTHS_S if width * (BUCKETS - 2) >= span_s), WIDTHS_S[-1])


def _sample(cells: Sequence[int], slot: int, layers: int) -> Sample | None:
    sample = tuple(cells[slot * layers : (slot + 1) * layers])
    return None if sample[0] == _NOTHING else sample
