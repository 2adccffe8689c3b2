"""Keeps Python's garbage collector out of the agent's thread, and leaves the collector as the script has set it.

The collector runs in the thread that makes one container too many, and so do the finalizers and callbacks of the script
that it calls. Some of these may run in one thread only, as those of sqlite's connections. So the agent's thread makes
containers only while there is room for them.
"""

import gc

ROOM = 64
"""The containers that a small piece of work makes at most, less those that it frees. A reading makes 10, the counts of
calls 29."""
MUCH = 256
"""The same for a step of a look at the script's objects."""


class Collector:
    """Knows how many containers can be made before the collector runs. For the agent's one thread.

    Python counts the containers that were made since the last collection, less those that were freed. The reserve is
    made when there is plenty of room. When there is little, it is freed, and that makes room. The reserve consists of
    sets, because Python keeps none that is freed for later use.
    """

    def __init__(self) -> None:
        self._reserve: list[set[int]] = []

    def room(self, containers: int = ROOM) -> bool:
        """Return whether so many *containers* can be made now. If not, the script's threads have to run first.

        Call this again after whatever lets the script's threads run.
        """
        free = _free()
        if free > 2 * containers + MUCH:
            while len(self._reserve) < MUCH:
                self._reserve.append(set())
        elif free < containers:
            self._reserve.clear()
            free = _free()
        return free >= containers


def _free() -> int:
    threshold = gc.get_threshold()[0]
    return threshold - gc.get_count()[0] if threshold and gc.isenabled() else 1 << 30
