"""Keeps, in bounded memory, the events from which a reader that connects late can compute the present state.

Each class of events declares what is kept of it. The backlog itself only follows which processes run: the events of a
process that has ended are dropped after a while. It also keeps the readings before a failure.
"""

from collections.abc import Set
from itertools import chain

from tfmemtop.engine.stream.stores import Store
from tfmemtop.events import Event, Hook, OutOfMemory, Outside, Process, ProcessReadings, Run, event_types
from tfmemtop.events.keep import Curve

_ENDED = 64
"""How many processes that had a hook are still kept after their end."""


class Backlog:
    """Reduces the stream to the events that a late reader must receive again."""

    def __init__(self) -> None:
        self._alive: set[int] = set()
        self._of_runs: set[int] = set()
        self._hooked: dict[int, None] = {}  # in the order in which their hooks connected
        self._newest_run: int | None = None  # the first process of the newest run
        self._pinned: dict[int, list[Event]] = {}  # by process: the readings before its last failure
        self._stores = {kind: Store(kind.keep, self._of_runs.__contains__) for kind in event_types()}

    def add(self, event: Event) -> None:
        """Add one event."""
        self._stores[type(event)].add(event)
        match event:
            case Hook() | Outside():
                self._hooked.pop(event.pid, None)
                self._hooked[event.pid] = None
            case OutOfMemory():
                self._pin_readings(event.pid)
            case Run():
                self._newest_run = event.pid
            case Process(run=None):
                self._of_runs.discard(event.pid)
            case Process():
                self._of_runs.add(event.pid)
            case ProcessReadings():
                self._alive_now({reading.pid for reading in event.processes})

    def events(self) -> list[Event]:
        """Return all kept events in the order of their times."""
        kept = chain(*self._stores.values(), *self._pinned.values())
        return sorted({id(event): event for event in kept}.values(), key=lambda event: event.t)

    @property
    def curves(self) -> int:
        """The number of curves of readings that are kept. Each may have hundreds of events."""
        return sum(len(store) for kind, store in self._stores.items() if isinstance(kind.keep, Curve))

    def _pin_readings(self, pid: int) -> None:
        """Keep the readings before a failure as long as the failure, since they are needed to judge it."""
        readings = (store for kind, store in self._stores.items() if kind.droppable)
        self._pinned[pid] = [reading for store in readings for reading in store.newest(pid)]

    def _alive_now(self, alive: set[int]) -> None:
        ended, self._alive = self._alive - alive, alive
        if ended:
            # A run that starts a child every few minutes would fill megabytes with their curves.
            self._coarsen(ended - {self._newest_run})
        hooked_and_ended = [pid for pid in self._hooked if pid not in alive]
        oldest = hooked_and_ended[: max(0, len(hooked_and_ended) - _ENDED)]
        if forgotten := {pid for pid in ended if pid not in self._hooked}.union(oldest):
            self._forget(forgotten)

    def _coarsen(self, pids: Set[int | None]) -> None:
        for store in self._stores.values():
            store.coarsen(pids)

    def _forget(self, pids: set[int]) -> None:
        for store in self._stores.values():
            store.forget(pids)
        self._of_runs -= pids
        for pid in pids:
            self._hooked.pop(pid, None)
            self._pinned.pop(pid, None)
