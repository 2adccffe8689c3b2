"""The session's state for its metrics. Several threads fold events into it and read it."""

from collections import deque
from threading import Lock

from tfmemtop.engine.metrics.families import families, text_of
from tfmemtop.events import Event
from tfmemtop.state import State
from tfmemtop.state.fold import apply


class MetricsState:
    """Folds events into the state and returns its metrics. Several threads may use it.

    Another thread may append events to *new* at any time. They are folded before each look, and by :meth:`fold`.
    """

    def __init__(self, new: deque[Event]) -> None:
        self._new = new
        self._state = State()
        self._lock = Lock()  # also so that one thread at a time makes a text: the others need Python's lock too

    def fold(self) -> None:
        """Fold the new events into the state."""
        with self._lock:
            self._fold()

    def text(self) -> bytes:
        """Return the current metrics in Prometheus's text format."""
        with self._lock:
            self._fold()
            return text_of(families(self._state))

    def _fold(self) -> None:
        for _ in range(len(self._new)):  # events that arrive meanwhile are left for the next time
            apply(self._state, self._new.popleft())
