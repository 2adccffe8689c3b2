"""Keeps, in bounded memory, the events from which a reader that connects late can compute the present state.

Each class of events declares what is kept of it. The backlog itself only follows which processes run: the events of a
process that has ended are dropped after a while. It also keeps the readings before a failure.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Set
from itertools import chain

import msgspec

from tfmemtop.events import Event, Hook, OutOfMemory, Output, Outside, Process, ProcessReadings, Run, event_types
from tfmemtop.events.base import Curve, Keep, Latest, Newest, Tail
from tfmemtop.series import Series

POINTS = 600
"""The number of readings that are kept of one curve."""

_POINTS_OF_THE_DEAD = 60
_FINEST_S = 2.0**-20
_JOINED = 4 * 1024  # characters of output in one event

Ours = Callable[[int], bool]
"""A function that returns whether the process of that number belongs to a run."""


class Slot:
    """The events that are kept of one key. ``last`` is the newest event of that key."""

    last: Event | None = None

    def add(self, event: Event) -> None:
        """Add one event. This class keeps none."""

    def coarsen(self) -> None:
        """Keep less, if there is much. Called when the process of this key has ended."""

    def __iter__(self) -> Iterator[Event]:
        """Yield the events in order."""
        return iter(())


class Store:
    """The events that are kept of one class, in a :class:`Slot` for each key."""

    def __init__(self, keep: Keep, ours: Ours) -> None:
        self._keep = keep
        self._ours = ours
        self._key = keep.key
        self._of_processes = keep.by[:1] == ("pid",)
        self._most = keep.most if isinstance(keep, Latest) else None
        self._slots: dict[Hashable, Slot] = {}

    def add(self, event: Event) -> None:
        """Add one event."""
        key = self._key(event)
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = _slot(self._keep, self._ours)
        slot.add(event)
        if self._most is not None:
            self._slots[key] = self._slots.pop(key)
            if len(self._slots) > self._most:
                del self._slots[next(iter(self._slots))]

    def newest(self, pid: int) -> Iterator[Event]:
        """Yield the newest event of each key of this process; of all keys, if the class is not kept by process."""
        keys = self._keys_of({pid}) if self._of_processes else self._slots
        yield from (last for key in keys if (last := self._slots[key].last) is not None)

    def forget(self, pids: Set[int | None]) -> None:
        """Drop all events that are kept of these processes."""
        for key in self._keys_of(pids):
            del self._slots[key]

    def coarsen(self, pids: Set[int | None]) -> None:
        """Keep less of these processes, which have ended."""
        for key in self._keys_of(pids):
            self._slots[key].coarsen()

    def _keys_of(self, pids: Set[int | None]) -> list[Hashable]:
        if not self._of_processes:
            return []
        return [key for key in self._slots if (key[0] if isinstance(key, tuple) else key) in pids]

    def __iter__(self) -> Iterator[Event]:
        for slot in self._slots.values():
            yield from slot


def _slot(keep: Keep, ours: Ours) -> Slot:
    match keep:
        case Curve():
            return _Points(keep, ours)
        case Tail():
            return _Text(keep.characters)
        case Newest():
            return _Ring(keep.count, keep.first, keep.highest)
        case Latest():
            return _Ring(1)
    return Slot()


class _Ring(Slot):
    """The newest events, as many as *count*; with *keeps_first*, also the very first; that with most of *highest*."""

    def __init__(self, count: int, keeps_first: bool = False, highest: str = "") -> None:
        self._of_height = highest
        self._highest: Event | None = None
        self._first: deque[Event] = deque(maxlen=int(keeps_first))
        self._newest: deque[Event] = deque(maxlen=count)

    def add(self, event: Event) -> None:
        self.last = event
        (self._newest if len(self._first) == self._first.maxlen else self._first).append(event)
        name, highest = self._of_height, self._highest
        if name and (highest is None or getattr(event, name) >= getattr(highest, name)):
            self._highest = event

    def coarsen(self) -> None:
        while self._first and len(self._newest) > 1:
            self._newest.popleft()

    def __iter__(self) -> Iterator[Event]:
        kept = (*self._first, self._highest, *self._newest)
        yield from {id(event): event for event in kept if event is not None}.values()


class _Points(Slot):
    """One curve. Of a stretch of time, the highest event is kept. The newest event is kept whole."""

    def __init__(self, curve: Curve, ours: Ours) -> None:
        self._height = curve.height
        self._ours = ours
        self._points = Series(self._higher, _FINEST_S, POINTS)

    def add(self, event: Event) -> None:
        self.last = event
        self._points.add(event.t, event.past(self._ours))

    def coarsen(self) -> None:
        self._points.bound(_POINTS_OF_THE_DEAD)

    def _higher(self, a: Event, b: Event) -> Event:
        return a if self._height(a) > self._height(b) else b

    def __iter__(self) -> Iterator[Event]:
        if self.last is not None:
            # The newest event may also be a point, but without the fields that are kept of the newest event only.
            yield from (point for point in self._points.windows if point.t != self.last.t)
            yield self.last


class _Text(Slot):
    """The end of the script's output. The first event contains how many bytes of its run's output came before it."""

    def __init__(self, characters: int) -> None:
        self._most = characters
        self._parts: deque[Output] = deque()
        self._size = 0
        self._lost = 0  # bytes

    def add(self, event: Event) -> None:
        assert isinstance(event, Output)
        self.last = event
        last = self._parts[-1] if self._parts else None
        if last and last.run == event.run and not event.skipped and len(last.text) + len(event.text) < _JOINED:
            self._parts.pop()
            self._size -= len(last.text)
            event = msgspec.structs.replace(event, text=last.text + event.text, skipped=last.skipped)
        self._parts.append(event)
        self._size += len(event.text)
        while self._size > self._most and len(self._parts) > 1:
            self._drop_first()

    def _drop_first(self) -> None:
        gone = self._parts.popleft()
        self._size -= len(gone.text)
        lost = self._lost + gone.skipped + len(gone.text.encode())
        self._lost = lost if gone.run == self._parts[0].run else 0

    def __iter__(self) -> Iterator[Event]:
        if self._parts:
            first, *rest = self._parts
            yield msgspec.structs.replace(first, skipped=first.skipped + self._lost)
            yield from rest


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
