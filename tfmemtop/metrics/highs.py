"""The highest use of each pool since each reader of the metrics last read it."""

from collections import deque
from collections.abc import Hashable, Mapping

from tfmemtop.metrics.families import Place

READERS = 32
"""Marks are kept for this many readers. If there is one more, it replaces the reader whose last read is the oldest."""

Marks = dict[Place, int]


class Highs:
    """Keeps marks of its own for each reader, so that two readers which read in turn both receive every spike.

    A reader that reads for the first time receives the highest use since the run began.
    """

    def __init__(self) -> None:
        self._ever: Marks = {}
        self._since: dict[Hashable, Marks] = {}

    def add(self, place: Place, size: int) -> None:
        """Note that *size* bytes were in use at *place* for a moment."""
        for marks in (self._ever, *self._since.values()):
            if size > marks.get(place, -1):
                marks[place] = size

    def restart(self) -> None:
        """Remove all marks, because another run begins."""
        self._ever.clear()
        for marks in self._since.values():
            marks.clear()

    def take(self, reader: Hashable) -> Marks:
        """Return the marks for *reader*, which reads now. Later use is for its next read."""
        marks = self._since.pop(reader, None)
        while len(self._since) >= READERS:
            del self._since[next(iter(self._since))]
        self._since[reader] = {}
        return dict(self._ever) if marks is None else marks

    def give_back(self, reader: Hashable, marks: Mapping[Place, int]) -> None:
        """Keep *marks* for the next read of *reader*, because it has not received them."""
        since = self._since.setdefault(reader, {})
        for place, size in marks.items():
            since[place] = max(size, since.get(place, 0))


class Lately:
    """The highest use in the last *count* reads. It serves a file, because it is not known when the file is read."""

    def __init__(self, count: int) -> None:
        self._looks: deque[Mapping[Place, int]] = deque(maxlen=count)

    def restart(self) -> None:
        """Remove all marks."""
        self._looks.clear()

    def add(self, marks: Mapping[Place, int]) -> Marks:
        """Add the *marks* of one more read; return the highest marks of the last reads."""
        self._looks.append(marks)
        found: Marks = {}
        for look in self._looks:
            for place, size in look.items():
                found[place] = max(size, found.get(place, 0))
        return found
