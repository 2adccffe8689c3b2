"""One run's memory from its start to its end, to be drawn together with other runs.

The size of a curve is bounded however long the run is. Whenever its cells of time are used up, they
double in width. Each cell keeps the highest values of its time, so that no peak is lost.
"""

from array import array

from tfmemtop.state.history import Sample

CELLS = 1024
"""The number of cells. At least half are in use once a run has lasted ``CELLS * FIRST_WIDTH_S`` seconds."""
FIRST_WIDTH_S = 0.1
BOUNDARIES = 3
"""The number of values in a sample: in use, pool, process total; in bytes, rising."""

_NOTHING = -1
_MOST_BYTES = 2**63 - 1


class Curve:
    """Samples over the seconds since a run began."""

    __slots__ = ("_cells", "_latest", "end", "width_s")

    def __init__(self) -> None:
        self.width_s = FIRST_WIDTH_S
        self._cells = array("q")  # the cells up to the newest reading
        self._latest: Sample | None = None
        self.end = 0.0

    def add(self, t: float, sample: Sample) -> None:
        """Add a sample that was read *t* seconds after the start; a time before the newest counts as the newest."""
        t = self.end = max(self.end, t)
        sample = tuple(min(max(size, 0), _MOST_BYTES) for size in sample)
        while t >= self.width_s * CELLS:
            self._widen()
        cell, count = int(t / self.width_s), len(self._cells) // BOUNDARIES
        if cell < count:
            for offset, size in enumerate(sample, cell * BOUNDARIES):
                self._cells[offset] = max(size, self._cells[offset])
        else:
            held = self._latest or (_NOTHING,) * BOUNDARIES
            self._cells.extend(array("q", held) * (cell - count))
            self._cells.extend(sample)
        self._latest = sample

    def columns(self, width_s: float, count: int, boundary: int) -> list[int | None]:
        """Return the highest value of a *boundary* in each of *count* columns of *width_s* seconds, from the start on.

        It is ``None`` before the first reading and after the last.
        """
        cells = self._cells[boundary::BOUNDARIES]
        found: list[int | None] = []
        for column in range(count):
            first = int(column * width_s / self.width_s)
            last = max(first + 1, int((column + 1) * width_s / self.width_s))
            size = max(cells[first:last], default=_NOTHING)
            found.append(None if size == _NOTHING else size)
        return found

    def highest(self, boundary: int, until: float | None = None) -> int | None:
        """Return the highest value of a *boundary* before *until* seconds, or of the whole run without *until*.

        The cell that contains *until* does not count. Return ``None`` if nothing was read.
        """
        cells = self._cells[boundary::BOUNDARIES]
        known = cells if until is None else cells[: int(until / self.width_s)]
        return max((size for size in known if size != _NOTHING), default=None)

    def between(self, begin: float, end: float, boundary: int) -> int | None:
        """Return the highest value of a *boundary* from *begin* to *end* seconds; ``None`` if nothing was read."""
        first = int(max(0.0, begin) / self.width_s)
        last = max(first + 1, int(end / self.width_s))
        cells = self._cells[first * BOUNDARIES + boundary : last * BOUNDARIES : BOUNDARIES]
        return max((size for size in cells if size != _NOTHING), default=None)

    @property
    def begin(self) -> float | None:
        """Seconds from the start until the run first had memory; ``None`` if it never had any."""
        first = next((cell for cell, size in enumerate(self._cells[BOUNDARIES - 1 :: BOUNDARIES]) if size > 0), None)
        return None if first is None else first * self.width_s

    def _widen(self) -> None:
        old, self._cells = self._cells, array("q")
        for at in range(0, len(old), 2 * BOUNDARIES):
            pair = old[at : at + BOUNDARIES], old[at + BOUNDARIES : at + 2 * BOUNDARIES]
            self._cells.extend(map(max, *pair) if pair[1] else pair[0])
        self.width_s *= 2
