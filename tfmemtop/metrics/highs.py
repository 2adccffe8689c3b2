"""The highest use of each pool since each of its readers looked last."""

from collections import deque
from collections.abc import Hashable, Mapping

from tfmemtop.metrics.families import Place

READERS = 32
"""Of so many readers it is remembered when they looked last; a further one replaces the one who looked longest ago."""

Marks = dict[Place, int]


class Highs:
    """Keeps a mark of its own for each reader, so that two who look in turn both see every spike.

    Who looks for the first time sees the highest since the run began.
    """

    def __init__(self) -> None:
        self._ever: Marks = {}
        self._since: dict[Hashable, Marks] = {}

    def add(self, place: Place, size: int) -> None:
        """So many bytes were in use there for a moment."""
        for marks in (self._ever, *self._since.values()):
            if size > marks.get(place, -1):
                marks[place] = size

    def restart(self) -> None:
        """Another run begins: what was before it is no figure of it."""
        self._ever.clear()
        for marks in self._since.values():
            marks.clear()

    def take(self, reader: Hashable) -> Marks:
        """The marks for *reader*, who looks now. What comes from here on is for its next look."""
        marks = self._since.pop(reader, None)
        while len(self._since) >= READERS:
            del self._since[next(iter(self._since))]
        self._since[reader] = {}
        return dict(self._ever) if marks is None else marks

    def give_back(self, reader: Hashable, marks: Mapping[Place, int]) -> None:
        """The *reader* has not got these marks: they are for its next look."""
        since = self._since.setdefault(reader, {})
        for place, size in marks.items():
            since[place] = max(size, since.get(place, 0))


class Lately:
    """The highest of the last *count* looks: for a reader of whom nobody knows when it looks."""

    def __init__(self, count: int) -> None:
        self._looks: deque[Mapping[Place, int]] = deque(maxlen=count)

    def restart(self) -> None:
        """Forget them all."""
        self._looks.clear()

    def add(self, marks: Mapping[Place, int]) -> Marks:
        """Take in the *marks* of one more look; return those of the last looks together."""
        self._looks.append(marks)
        found: Marks = {}
        for look in self._looks:
            for place, size in look.items():
                found[place] = max(size, found.get(place, 0))
        return found
