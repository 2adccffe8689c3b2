"""Reads the pools of all TensorFlow processes that may be read, once and in little time."""

import time
from collections.abc import Collection

from tfmemtop.engine.sources.host import TENSORFLOW_LEAST
from tfmemtop.engine.sources.outside.look import Look, allocator_event, outside_event
from tfmemtop.engine.sources.processes import all_pids, find, has_tensorflow
from tfmemtop.events import Event

MOST = 16
"""The most processes of one sweep."""
MOST_S, MOST_WAITED_S = 0.2, 1.0
"""Seconds of this thread's CPU time and of wall-clock time in one sweep, after which no further process is begun.

On a machine whose processors are busy, the two differ a lot.
"""

_LOOKED_AT = 64  # processes that are checked for TensorFlow, at most


class Sweep:
    """Reads processes, and keeps them open between sweeps."""

    def __init__(self) -> None:
        self._looks: dict[int, Look] = {}

    def read(self, first: Collection[int], t: float = 0.0) -> list[Event]:
        """Read the processes and return the events, those in *first* before all others.

        The number of processes and the time are bounded. *t* is the time of the events, in session seconds.
        """
        until, worked = time.monotonic() + MOST_WAITED_S, time.thread_time() + MOST_S
        events: list[Event] = []
        seen = 0
        kept: dict[int, Look] = {}
        for pid in self._candidates(first):
            if seen == MOST or time.monotonic() > until or time.thread_time() > worked:
                break
            look = self._looks.get(pid)
            if look is None:
                if not has_tensorflow(pid):
                    continue
                look = Look(pid)
            seen += 1
            kept[pid] = look
            events += _told(look, t)
        for pid in self._looks.keys() - kept.keys():
            self._looks[pid].close()
        self._looks = kept
        return events

    def close(self) -> None:
        """Close the memory of the processes."""
        for look in self._looks.values():
            look.close()
        self._looks = {}

    def _candidates(self, first: Collection[int]) -> list[int]:
        sizes: dict[int, int] = {}
        for pid in all_pids():
            process = find(pid)
            if process is not None and (process.rss >= TENSORFLOW_LEAST or pid in first):
                sizes[pid] = process.rss
        return sorted(sizes, key=lambda pid: (pid not in first, -sizes[pid]))[:_LOOKED_AT]


def _told(look: Look, t: float) -> list[Event]:
    about = look.refresh()
    figures = look.read() if about.state.inside else {}
    readings = [allocator_event(look.pid, device, name, one, t) for device, (name, one) in sorted(figures.items())]
    return [outside_event(look.pid, about, t), *readings]
