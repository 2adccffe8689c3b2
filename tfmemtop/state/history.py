"""Histories that stay bounded however long a session runs, and lose no peak.

A history holds samples: tuples of byte counts that rise from left to right, the boundaries of the
layers of a stacked bar. It keeps them at several resolutions; at each, a bucket of time holds the
highest of every boundary (so a spike of one reading survives any downsampling, and the layers of a
downsampled column still never exceed one another) and the last sample (which holds until the next).
"""

from collections.abc import Iterator

Sample = tuple[int, ...]

BUCKETS = 1024
WIDTHS_S = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
"""Bucket widths of the resolutions, in seconds: together they span 4 minutes to 3 days."""


class _Level:
    """One resolution: a ring of buckets."""

    __slots__ = ("highest", "ids", "last", "width_s")

    def __init__(self, width_s: float) -> None:
        self.width_s = width_s
        self.ids = [-1] * BUCKETS
        self.highest: list[Sample] = [()] * BUCKETS
        self.last: list[Sample] = [()] * BUCKETS

    def add(self, t: float, sample: Sample) -> None:
        bucket = int(t / self.width_s)
        slot = bucket % BUCKETS
        if self.ids[slot] == bucket:
            if sample != self.highest[slot]:
                self.highest[slot] = tuple(map(max, self.highest[slot], sample))
        elif self.ids[slot] < bucket:
            self.ids[slot] = bucket
            self.highest[slot] = sample
        self.last[slot] = sample


class History:
    """Samples over time; memory is fixed, adding is constant in time."""

    __slots__ = ("_levels", "end")

    def __init__(self) -> None:
        self._levels = [_Level(width) for width in WIDTHS_S]
        self.end: float | None = None

    def add(self, t: float, sample: Sample) -> None:
        """Take in the sample read at *t* seconds; times do not fall."""
        self.end = t
        for level in self._levels:
            level.add(t, sample)

    def columns(self, span_s: float, count: int, end: float) -> list[Sample | None]:
        """The last *span_s* seconds before *end* as *count* columns, oldest first.

        A column holds the highest of each boundary in its time, or, where nothing was read in it,
        the last sample before; ``None`` before the first. Column borders are multiples of the
        column's width, so that a column once complete stays as it is while the graph moves on.
        """
        if count <= 0:
            return []
        width = span_s / count
        level = next((lv for lv in self._levels if lv.width_s * BUCKETS >= span_s + width), self._levels[-1])
        last_column = int(end / width)
        first_column = last_column - count + 1
        columns: list[Sample | None] = [None] * count
        held: Sample | None = None
        filled = 0  # columns before this index are final
        for start_s, highest, last in self._walk(level, first_column * width):
            index = int(start_s / width) - first_column
            if index >= count:
                break
            if index < 0:
                held = last
                continue
            while filled <= index:
                columns[filled] = held
                filled += 1
            before = columns[index]
            columns[index] = highest if before is None else tuple(map(max, before, highest))
            held = last
        while filled < count:
            columns[filled] = held
            filled += 1
        return columns

    @staticmethod
    def _walk(level: _Level, since_s: float) -> Iterator[tuple[float, Sample, Sample]]:
        """Buckets in order of time: those from *since_s* on, and the one before them."""
        width = level.width_s
        newest = max(level.ids)
        if newest < 0:
            return
        first = max(newest - BUCKETS + 1, int(since_s / width), 0)
        # A sample holds until the next: begin with the newest one before the window.
        for bucket in range(first - 1, max(newest - BUCKETS, -1), -1):
            slot = bucket % BUCKETS
            if level.ids[slot] == bucket:
                yield bucket * width, level.highest[slot], level.last[slot]
                break
        for bucket in range(first, newest + 1):
            slot = bucket % BUCKETS
            if level.ids[slot] == bucket:
                yield bucket * width, level.highest[slot], level.last[slot]
