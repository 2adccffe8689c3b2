"""The session's state for its metrics. Several threads fold events into it and read it."""

from collections import deque
from collections.abc import Hashable, Mapping
from threading import Lock

from prometheus_client.metrics_core import Metric

from tfmemtop.engine.metrics.families import Place, families, place_of, places, running_pools
from tfmemtop.events import Allocator, Event, Run
from tfmemtop.events.device_names import is_pinned
from tfmemtop.state import State
from tfmemtop.state.fold import apply
from tfmemtop.state.lookup import of_run

RECENT_S = 120.0
"""In a file, the highest use is that of the last so many seconds: longer than a reader waits between two reads."""
WRITE_S = 5.0
"""Seconds between two writes of the file."""


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


class RecentHighs:
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


class MetricsState:
    """Folds events into the state and returns families. Several threads may use it.

    Another thread may append events to *new* at any time. They are folded before each look, and by :meth:`fold`.
    """

    def __init__(self, new: deque[Event]) -> None:
        self._new = new
        self._state = State()
        self._highs = Highs()
        self._recent = RecentHighs(round(RECENT_S / WRITE_S))
        self._used = _BytesInUse()
        self._lock = Lock()

    def fold(self) -> None:
        """Fold the new events into the state."""
        with self._lock:
            self._fold()

    def look(self, reader: Hashable) -> list[Metric]:
        """Return the current families for *reader*."""
        with self._lock:
            self._fold()
            return families(self._state, self._highs.take(reader))

    def look_for_file(self, *, last: bool) -> list[Metric]:
        """Return the families for the file, which is written every :data:`WRITE_S`; *last*: it is the last time."""
        with self._lock:
            self._fold()
            marks = self._recent.add(self._highs.take(WRITE_S))
            return families(self._state, marks, last=last)

    @property
    def has_begun(self) -> bool:
        """Whether there is anything to export yet: a run or a GPU."""
        with self._lock:
            self._fold()
            return bool(self._state.runs or self._state.devices)

    def _fold(self) -> None:
        for _ in range(len(self._new)):  # events that arrive meanwhile are left for the next time
            self._apply(self._new.popleft())

    def _apply(self, event: Event) -> None:
        if isinstance(event, Run):
            self._highs.restart()
            self._recent.restart()
        apply(self._state, event)
        if isinstance(event, Allocator) and of_run(self._state, event.pid) and not is_pinned(event.device):
            place = place_of(self._state, event.pid, event.device)
            spike = max(0, (event.high or 0) - (event.in_use or 0))
            self._highs.add(place, self._used.after(self._state, place, event) + spike)


class _BytesInUse:
    """The bytes in use at each place. It is updated for each reading without a loop over all processes."""

    def __init__(self) -> None:
        self._shape = -1
        self._of: dict[tuple[int, str], int] = {}  # by process and logical device
        self._there: dict[Place, int] = {}

    def after(self, state: State, place: Place, event: Allocator) -> int:
        """Return the bytes in use at *place*, at which *event* was read. *event* is already folded into *state*."""
        if self._shape != state.shape:
            # A process or a pool has appeared or ended.
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
