"""Finds the processes of this container in the driver's lists, where their numbers (PIDs) may differ from those here.

Some NVIDIA drivers list processes by the machine's numbers, also when the call comes from a container. Others, such as
580 with open kernel modules, list them by the numbers of the calling process's PID namespace, and leave out processes
outside it. So if tfmemtop runs in a PID namespace of its own, a listed number means the process with that number here
only if that process has a GPU open. Otherwise the memory of a process outside would be attributed to a process here
that happens to have the same number.

Every other listed process is either outside, or it is a process here with a hook that reports memory on that GPU. Each
of these hooked processes must be in the list. If only one listed process is left, or only one is large enough, it is
the hooked process.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from tfmemtop import events
from tfmemtop.engine.sources.processes import Namespace, pid_namespace, uses_gpu
from tfmemtop.units import MIB

_LISTED_AFTER_S = 3.0
"""Seconds after TensorFlow has initialised its devices. From then on the driver lists the process in every reading."""

_NEGLIGIBLE = 256 * MIB  # bytes in use on a card that need not belong to any process


class _Holder(msgspec.Struct, dict=True):
    """A process with a hook.

    By device, ``places`` has the GPU's UUID and since when the process holds memory there. ``pools`` has the times and
    sizes of the pool in the last seconds, in bytes.
    """

    places: dict[str, tuple[str, float]] = msgspec.field(default_factory=dict)
    pools: dict[str, "deque[tuple[float, int]]"] = msgspec.field(default_factory=dict)

    def read(self, device: str, now: float, size: int) -> None:
        """Note that the pool of *device* has *size* bytes at the time *now*."""
        pools = self.pools.setdefault(device, deque())
        pools.append((now, size))
        while pools[0][0] < now - _LISTED_AFTER_S and len(pools) > 1:
            pools.popleft()

    def least(self, uuid: str, now: float) -> int | None:
        """Return the bytes that the process certainly holds on the GPU *uuid*.

        ``None`` if the driver need not list the process there yet.
        """
        here = [device for device, (where, since) in self.places.items() if where == uuid]
        if not any(now - self.places[device][1] > _LISTED_AFTER_S for device in here):
            return None
        return sum(min((size for _, size in self.pools.get(device, ())), default=0) for device in here)


def tell_apart(sizes: dict[int, int | None], holders: dict[int, int]) -> dict[int, int]:
    """Return the number here of each listed process for which it is certain, by its listed number.

    *sizes* are the bytes that each listed process holds, ``None`` if unknown. *holders* are the bytes that each hooked
    process holds at least. Each hooked process is one of the listed processes.
    """
    left, found = dict(sizes), dict[int, int]()
    searched = dict(holders)
    while searched:
        fitting = {
            pid: [number for number, size in left.items() if size is None or size >= least]
            for pid, least in searched.items()
        }
        pid = next((pid for pid, numbers in fitting.items() if len(numbers) == 1), None)
        if pid is None:
            break
        number = fitting[pid][0]
        found[number] = pid
        del left[number], searched[pid]
    return found


class Foreign:
    """Puts the numbers of this namespace into the driver's readings, from what the hooks have reported until then.

    *here* returns the processes of this namespace that may use a GPU without a hook. *is_local* returns whether a
    process of this namespace has a GPU open.
    """

    def __init__(
        self,
        here: Callable[[], Iterable[int]],
        namespace: Namespace | None = None,
        is_local: Callable[[int], bool] = uses_gpu,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._here = here
        self._namespace = pid_namespace() if namespace is None else namespace
        self._is_local = is_local
        self._clock = clock
        self._holders: dict[int, _Holder] = {}
        self._uuids: dict[int, str] = {}  # by NVML index
        self._known: dict[int, dict[int, int]] = {}  # by NVML index: a driver's number and the certain number here
        self._placed: dict[int, set[int]] = {}  # by NVML index: processes here that were found in the driver's list

    def take(self, event: events.Event) -> None:
        """Update what is known of the hooks' processes from an *event* of the stream."""
        match event:
            case events.Device():
                self._uuids[event.index] = event.uuid
            case events.Effective(uuid=str(uuid)):
                holder = self._holders.setdefault(event.pid, _Holder())
                holder.places.setdefault(event.device, (uuid, self._clock()))
            case events.Allocator() if event.pid in self._holders:
                size = max(event.pool or 0, event.in_use or 0)
                self._holders[event.pid].read(event.device, self._clock(), size)
            case events.HookEnd():
                self._holders.pop(event.pid, None)
            case _:
                pass

    def translate(self, reading: events.DeviceReading) -> events.DeviceReading:
        """Return *reading* with the numbers of this namespace.

        Its ``outside`` is the memory of all processes outside the namespace. If this is the machine's first namespace,
        *reading* is returned unchanged.
        """
        if self._namespace == "first":
            return reading
        now, uuid = self._clock(), self._uuids.get(reading.index, "")
        mine = [row for row in reading.processes if row.pid != os.getpid() and self._is_local(row.pid)]
        placed = {row.pid for row in mine}
        strange = {row.pid: row for row in reading.processes if row.pid not in placed}
        holders = {
            pid: least
            for pid, holder in self._holders.items()
            if pid not in placed and (least := holder.least(uuid, now)) is not None
        }
        known = self._known.get(reading.index, {})
        known = {number: pid for number, pid in known.items() if number in strange and pid in holders}
        known |= tell_apart(
            {number: row.used for number, row in strange.items() if number not in known},
            {pid: least for pid, least in holders.items() if pid not in known.values()},
        )
        self._known[reading.index] = known
        rows = [*mine, *(msgspec.structs.replace(strange[number], pid=pid) for number, pid in known.items())]
        self._placed[reading.index] = {row.pid for row in rows}
        untold = len(holders) > len(known) or (len(strange) > len(known) and self._unplaced())
        return _told(reading, rows, untold)

    def _unplaced(self) -> bool:
        """Return whether a process here uses a GPU and has not been found on any card.

        It may then be one of the listed processes that have not been matched.
        """
        placed = set[int]().union(*self._placed.values(), self._holders, {os.getpid()})
        return any(self._is_local(pid) for pid in self._here() if pid not in placed)


def _told(reading: events.DeviceReading, rows: list[events.DeviceProcess], untold: bool) -> events.DeviceReading:
    # Some drivers report 0 bytes for a process because they look up its size under the wrong number. A process here
    # that uses the card holds at least a context.
    rows = [msgspec.structs.replace(row, used=None) if row.used == 0 else row for row in rows]
    rows.sort(key=lambda row: (-(row.used or 0), row.pid))
    missing, outside = reading.processes_missing, None
    if missing not in (None, events.SharesMissing.NAMES_NONE):
        pass  # no process's figures can be read, here or outside
    elif untold:
        missing = events.SharesMissing.NUMBERED_OTHERWISE
    elif any(row.used is None for row in rows):
        missing = events.SharesMissing.NOT_TOLD_IN_CONTAINER
    elif reading.used is not None:
        left = reading.used - sum(row.used or 0 for row in rows)
        missing, outside = None, left if left > _NEGLIGIBLE else None
    return msgspec.structs.replace(reading, processes=rows, processes_missing=missing, outside=outside)
