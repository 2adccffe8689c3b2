"""Leaves out most readings, and no other events. Reports on long sessions are made from the result.

Of the readings of one thing, these stay: in each stretch of ten seconds, the lowest and the highest reading of a curve,
or the newest of any other readings; the very first reading; and the readings just before an urgent event, such as an
allocation that failed. Of an allocator, the first reading with another size of the pool stays too. Of a GPU, the first
with other processes stays, the first after TensorFlow has made its devices, and the reading of each allocator after
these: a process's memory on the GPU is divided by both, and its CUDA context is measured only before it has computed.
Of windows of allocations, those stay whose peak is higher than any before, by a hundredth at least.
"""

import math
from collections.abc import Iterable, Iterator

from tfmemtop.events import Allocator, DeviceReading, Effective, Event, Framework, Holders, MemoryMap
from tfmemtop.events.base import Curve

STRETCH_S = 10.0
"""Stretches begin at multiples of this, like the windows in which the state looks for leaks."""


_APART_S: dict[type[Event], float] = {MemoryMap: 60.0, Holders: 600.0}
"""Least time between two readings of these classes. They are large, and reports use only the newest."""


_HIGHER = 1.01


class Outline:
    """Takes events in order, and returns them later, in order, with fewer readings."""

    def __init__(self, stretch_s: float = STRETCH_S) -> None:
        self._stretch_s = stretch_s
        self._stretch = -1
        self._decided: list[Event] = []
        self._readings: dict[object, _Readings] = {}
        self._given: dict[object, float] = {}  # time of the last returned reading of each large kind
        self._known: set[object] = set()  # things of which there was a reading
        self._firsts = _Firsts()

    def add(self, event: Event) -> list[Event]:
        """Take *event*. If it begins a new stretch, return the events that stay of the stretch before."""
        stretch = int(event.t / self._stretch_s)
        done = [] if stretch == self._stretch else self._release(newest=False)
        self._stretch = stretch
        if self._firsts.is_one(event):
            self._decided.append(event)
        if event.droppable:
            key = type(event), event.keep.key(event)
            readings = self._readings.get(key)
            if readings is None:
                self._readings[key] = _Readings(event)
                if key not in self._known:
                    self._known.add(key)
                    self._decided.append(event)
            else:
                readings.add(event)
        else:
            if event.urgent:
                self._decided = self._release(newest=True)
            self._decided.append(event)
        return done

    def rest(self) -> list[Event]:
        """Return the events that stay since the last stretch ended, and the newest reading of each thing."""
        return self._release(newest=True)

    def _release(self, newest: bool) -> list[Event]:
        found = {id(event): event for event in self._decided}
        for readings in self._readings.values():
            for event in readings.kept(newest):
                if newest or self._is_due(event):
                    found[id(event)] = event
        self._decided = []
        self._readings.clear()
        return sorted(found.values(), key=lambda event: event.t)

    def _is_due(self, event: Event) -> bool:
        apart_s = _APART_S.get(type(event))
        if apart_s is None:
            return True
        key = type(event), event.keep.key(event)
        if event.t < self._given.get(key, -apart_s) + apart_s:
            return False
        self._given[key] = event.t
        return True


class _Firsts:
    """Finds the readings by which the shares of a GPU's memory change, and which stay whatever follows."""

    def __init__(self) -> None:
        self._pools: dict[object, int | None] = {}  # by allocator
        self._peaks: dict[object, int] = {}  # of windows, by pool and phase
        self._pids: dict[int, set[int]] = {}  # by GPU
        self._awaited: set[object] = set()  # the allocators whose next reading stays

    def is_one(self, event: Event) -> bool:
        """Take *event*, and return whether it is one of them."""
        if isinstance(event, (Allocator, Framework)):
            key = event.keep.key(event)
            if key not in self._awaited and self._pools.get(key, -1) == event.pool:
                return False
            self._awaited.discard(key)
            self._pools[key] = event.pool
            return True
        if isinstance(event, Holders):
            key = event.keep.key(event)
            if event.peak <= _HIGHER * self._peaks.get(key, 0):
                return False
            self._peaks[key] = event.peak
            return True
        if isinstance(event, DeviceReading):
            pids = {process.pid for process in event.processes}
            if self._pids.get(event.index) == pids:
                return False
            self._pids[event.index] = pids
            self._awaited.update(self._pools)
            return True
        if isinstance(event, Effective):
            self._pids.clear()  # a context is measured by the first reading after TensorFlow has made its devices
        return False


class _Readings:
    """The readings of one thing in one stretch."""

    __slots__ = ("_fields", "_high", "_highest", "_low", "_lowest", "_newest")

    def __init__(self, event: Event) -> None:
        self._newest = self._low = self._high = event
        self._fields = event.keep.highest if isinstance(event.keep, Curve) else ()
        self._lowest = self._highest = 0
        if self._fields:
            self._lowest, self._highest = _span(event, self._fields)

    def add(self, event: Event) -> None:
        self._newest = event
        if self._fields:
            low, high = _span(event, self._fields)
            if low < self._lowest:
                self._low, self._lowest = event, low
            if high > self._highest:
                self._high, self._highest = event, high

    def kept(self, newest: bool) -> Iterator[Event]:
        if self._fields:
            yield self._low
            yield self._high
        if newest or not self._fields:
            yield self._newest


def _span(event: Event, fields: tuple[str, ...]) -> tuple[int, int]:
    """Return the main figure of a reading, which is the first of *fields*, and the highest of all *fields*."""
    low = getattr(event, fields[0]) or 0
    return low, max(low, *(getattr(event, name) or 0 for name in fields[1:])) if len(fields) > 1 else low


def outlined(
    events: Iterable[Event], start: float, end: float = math.inf, stretch_s: float = STRETCH_S
) -> Iterator[Event]:
    """Yield *events* with fewer readings, but with all readings from *start* to *end* seconds."""
    outline = Outline(stretch_s)
    for event in events:
        if start <= event.t <= end:
            yield from outline.rest()
            yield event
        else:
            yield from outline.add(event)
    yield from outline.rest()
