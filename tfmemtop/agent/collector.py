"""Keeps Python's garbage collector out of the agent's thread, and leaves the collector as the script has set it.

The collector runs in the thread that makes one container too many, and so do the finalizers and callbacks of the script
that it calls. Some of these may run in one thread only, as those of sqlite's connections. So the agent's thread makes
containers only while there is room for them.
"""

import gc
import sys
from _operator import itemgetter
from itertools import chain, repeat
from time import monotonic
from typing import Any

from .real_threads import pause

ROOM = 64
"""The containers that a small piece of work makes at most, less those that it frees. A reading makes 10, the counts of
calls 29."""
MUCH = 192
"""The same for a step of a look at the script's objects."""
_RESERVE = 4096  # 160 kB; a look at a script with many classes keeps more than a thousand
_FOR_WAITING = 512  # of the reserve, what is kept for a script that only waits
_PAUSE_S = 0.001
_PATIENCE_S = 0.25  # after so long without a collection, the script only waits
_TURNS = int(_PATIENCE_S / _PAUSE_S)
_ANY_THREAD = sys.version_info[:2] == (3, 12)  # whether a collection may run in another thread than made it due


class NoRoom(Exception):
    """There is no room for a step now. It may be tried again after :meth:`Collector.wait`."""


class _Filler:
    """A container of the reserve. Python does not keep it for later use when it is freed, as it keeps lists."""

    __slots__ = ("nothing",)


class Collector:
    """Knows how many containers can be made before the collector runs. For the agent's one thread.

    Python counts the containers that were made since the last collection, less those that were freed. A script that
    works collects soon, and then there is room. For a script that only waits there is a reserve: it is made in a thread
    of the script's, and again while there is plenty of room. To free some of it makes room.
    """

    def __init__(self) -> None:
        self.hurries = False
        """Whether the script waits for the agent's thread, so that it cannot make room."""
        self.needed = True
        """Whether room is needed. In a thread of the script's it is not: there the collector may run."""
        self._young = self._old = 0  # collections that Python has counted
        self._collected = 0.0  # when a collection was noticed last
        self._reserve: list[_Filler] = []
        self._fill(_RESERVE)

    def room(self, containers: int = ROOM) -> bool:
        """Return whether so many *containers* can be made now. If not, the script's threads have to run first.

        Call this again after whatever lets the script's threads run.
        """
        if not self.needed:
            return True
        # There may be no room at all now: what follows makes no container but for tuples that Python keeps for reuse.
        # The arguments of max() would be one more.
        now, free = monotonic(), _free()
        _, young, old = gc.get_count()
        if young != self._young or old != self._old:
            self._young, self._old, self._collected = young, old, now
        if free >= containers:
            if len(self._reserve) < _RESERVE:
                self._fill(free - 2 * MUCH)
            return True
        kept = 0 if now - self._collected > _PATIENCE_S else _FOR_WAITING if self.hurries else _RESERVE
        least = len(self._reserve) + free - containers - ROOM
        while len(self._reserve) > kept and len(self._reserve) > least:
            self._reserve.pop()
        return _free() >= containers

    def regain(self) -> None:
        """Make room again amid a piece of work, during which the script's threads may have run and used it up."""
        hurries, self.hurries = self.hurries, True  # the piece is done to its end, so it cannot wait for more room
        self.room()
        self.hurries = hurries

    def wait(self, containers: int, until: float) -> bool:
        """Let the script's threads run until there is room; return whether there is some by *until*."""
        while not self.room(containers):
            if monotonic() > until:
                return False
            pause(_PAUSE_S)
        return True

    def sleep(self, lock: Any, seconds: float) -> None:
        """Wait for the *lock*, so many *seconds* at most; if a collection is due then, wait a little for that too.

        On Python 3.12 any thread may run a collection that another thread has made due, once it runs Python code. So
        all of this is one call of ``any``. If the script's threads do not collect, the reserve makes room.
        """
        threshold = gc.get_threshold()[0]
        if not (_ANY_THREAD and threshold and gc.isenabled() and self.room()):
            lock.acquire(True, seconds)
            return
        waited = map(lock.acquire, repeat(True), chain((seconds,), repeat(_PAUSE_S, _TURNS)))
        settled = map(threshold.__ge__, map(itemgetter(0), iter(gc.get_count, None)))
        room = map(self._reserve.__delitem__, (slice(-_RESERVE // 4, None),))
        any(chain(map(itemgetter(1), zip(waited, settled)), room))

    def _fill(self, number: int) -> None:
        for _ in range(min(number, _RESERVE - len(self._reserve))):
            self._reserve.append(_Filler())


def _free() -> int:
    threshold = gc.get_threshold()[0]
    return threshold - gc.get_count()[0] if threshold and gc.isenabled() else 1 << 20
