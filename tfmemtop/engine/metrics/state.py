"""The session's state for its metrics. Several threads fold events into it and read it."""

from collections import deque
from threading import Lock

from prometheus_client.metrics_core import Metric

from tfmemtop.engine.metrics.families import Pool, families, text_of
from tfmemtop.events import Allocator, Event
from tfmemtop.state import State
from tfmemtop.state.fold import apply

RECENT_S = 120.0
"""The highest use of a pool is that of the last so many seconds: longer than Prometheus waits between two scrapes."""


class RecentHighs:
    """The highest use of each pool in the last :data:`RECENT_S` seconds."""

    def __init__(self) -> None:
        self._marks: dict[Pool, deque[tuple[float, int]]] = {}  # times and bytes, each higher than all that follow

    def add(self, pool: Pool, t: float, size: int) -> None:
        """Note that *size* bytes of *pool* were in use at *t* seconds, or shortly before."""
        marks = self._marks.setdefault(pool, deque())
        while marks and marks[-1][1] <= size:
            marks.pop()
        marks.append((t, size))
        self._forget(marks, t)

    def at(self, t: float) -> dict[Pool, int]:
        """Return the highest use of each pool, in bytes, as of *t* seconds."""
        for marks in self._marks.values():
            self._forget(marks, t)
        self._marks = {pool: marks for pool, marks in self._marks.items() if marks}
        return {pool: marks[0][1] for pool, marks in self._marks.items()}

    @staticmethod
    def _forget(marks: deque[tuple[float, int]], t: float) -> None:
        while marks and marks[0][0] < t - RECENT_S:
            marks.popleft()


class MetricsState:
    """Folds events into the state and returns its metrics. Several threads may use it.

    Another thread may append events to *new* at any time. They are folded before each look, and by :meth:`fold`.
    """

    def __init__(self, new: deque[Event]) -> None:
        self._new = new
        self._state = State()
        self._highs = RecentHighs()
        self._lock = Lock()  # also so that one thread at a time makes a text: the others need Python's lock too

    def fold(self) -> None:
        """Fold the new events into the state."""
        with self._lock:
            self._fold()

    def families(self, *, last: bool = False) -> list[Metric]:
        """Return the current families; *last* is for the file that is written at the session's end."""
        with self._lock:
            return self._families(last)

    def text(self, *, last: bool = False) -> bytes:
        """Return the current families in Prometheus's text format; *last* as for :meth:`families`."""
        with self._lock:
            return text_of(self._families(last))

    @property
    def has_begun(self) -> bool:
        """Whether there is anything to export yet: a run or a GPU."""
        with self._lock:
            self._fold()
            return bool(self._state.runs or self._state.devices)

    def _families(self, last: bool) -> list[Metric]:
        self._fold()
        return families(self._state, self._highs.at(self._state.now), last=last)

    def _fold(self) -> None:
        for _ in range(len(self._new)):  # events that arrive meanwhile are left for the next time
            self._apply(self._new.popleft())

    def _apply(self, event: Event) -> None:
        apply(self._state, event)
        if isinstance(event, Allocator):
            self._highs.add((event.pid, event.device), event.t, max(event.in_use or 0, event.high or 0))
