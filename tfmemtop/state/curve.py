"""One run's memory from its start to its end, to be drawn together with other runs."""

from tfmemtop.series import Series
from tfmemtop.state.history import Sample

CELLS = 1024
FIRST_WIDTH_S = 0.125  # a power of two, as a series needs it
BOUNDARIES = 3
"""The number of values in a sample: in use, pool, process total; in bytes, rising."""

_MOST_BYTES = 2**63 - 1


def _highest(a: Sample, b: Sample) -> Sample:
    return tuple(map(max, a, b))


class Curve:
    """Samples over the seconds since a run began. Of a stretch of time, the highest values stay, so no peak is lost."""

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
        self._samples.add(self.end, tuple(min(max(size, 0), _MOST_BYTES) for size in sample))

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
