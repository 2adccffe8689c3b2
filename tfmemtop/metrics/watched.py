"""The session as its metrics see it: folded in one thread, looked at from others."""

from collections.abc import Hashable, Iterable
from threading import Lock

from tfmemtop.events import Allocator, Event, Run, Trace
from tfmemtop.events.device_names import is_pinned
from tfmemtop.metrics.families import Family, Place, families, place_of, places, running_pools
from tfmemtop.metrics.highs import Highs, Lately, Marks
from tfmemtop.state import State
from tfmemtop.state.fold import apply
from tfmemtop.state.lookup import of_run

LATELY_S = 120.0
"""In a file, the highest use is that of so many seconds: longer than anybody waits between two looks at it."""
WRITE_S = 5.0
"""Seconds between two writings of the file."""


class Watched:
    """Takes in events and gives out families. May be used by several threads."""

    def __init__(self) -> None:
        self._state = State()
        self._highs = Highs()
        self._lately = Lately(round(LATELY_S / WRITE_S))
        self._used = _Used()
        self._lock = Lock()

    def take(self, events: Iterable[Event]) -> None:
        """Take in *events*."""
        with self._lock:
            for event in events:
                self._apply(event)

    def look(self, reader: Hashable) -> tuple[list[Family], Marks]:
        """The families as they are now for *reader*, and their marks, to be given back if it does not get them."""
        with self._lock:
            marks = self._highs.take(reader)
            return families(self._state, marks), marks

    def give_back(self, reader: Hashable, marks: Marks) -> None:
        """The *reader* has not got *marks*."""
        with self._lock:
            self._highs.give_back(reader, marks)

    def look_for_file(self, *, last: bool) -> list[Family]:
        """The families for a file that is written every :data:`WRITE_S`; *last*: for the last time."""
        with self._lock:
            marks = self._lately.add(self._highs.take(WRITE_S))
            return families(self._state, marks, last=last)

    @property
    def has_begun(self) -> bool:
        """Whether there is anything to tell yet."""
        with self._lock:
            return bool(self._state.runs or self._state.devices)

    def _apply(self, event: Event) -> None:
        if isinstance(event, Trace):
            return  # megabytes, of which no metric and no rule makes use
        if isinstance(event, Run):
            self._highs.restart()
            self._lately.restart()
        apply(self._state, event)
        if isinstance(event, Allocator) and of_run(self._state, event.pid) and not is_pinned(event.device):
            place = place_of(self._state, event.pid, event.device)
            spike = max(0, (event.high or 0) - (event.in_use or 0))
            self._highs.add(place, self._used.after(self._state, place, event) + spike)


class _Used:
    """The bytes in use at each place, kept up to date without a look at all processes for each reading."""

    def __init__(self) -> None:
        self._shape = -1
        self._of: dict[tuple[int, str], int] = {}  # by process and logical device
        self._there: dict[Place, int] = {}

    def after(self, state: State, place: Place, event: Allocator) -> int:
        """The bytes in use at *place*, where *event*, which *state* has taken in, was read."""
        if self._shape != state.shape:
            # Somebody has come or gone.
            self._shape = state.shape
            rows = running_pools(state)
            self._of = {(row.pid, row.device): row.in_use or 0 for row in rows}
            self._there = {at: sum(row.in_use or 0 for row in there) for at, there in places(state, rows).items()}
        else:
            allocator = event.pid, event.device
            now = event.in_use or 0
            self._there[place] = self._there.get(place, 0) + now - self._of.get(allocator, 0)
            self._of[allocator] = now
        return self._there.get(place, 0)
