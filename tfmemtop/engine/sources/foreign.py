"""Processes on a GPU whose numbers in the driver's lists differ from the numbers here, as in a container.

Some NVIDIA drivers list processes by the machine's numbers, wherever they are asked. Others, such as 580 with open
kernel modules, list them by the numbers of the asking process's namespace, and leave out processes outside it. So in
a namespace of its own, a listed number means the process with that number here only if that process has a GPU open.
Otherwise the memory of a process outside would be given to a process here that happens to have the same number.

The other listed processes are outside, or are processes here with a hook that reports memory on that GPU. Each of
these must be in the list. Where only one listed process is left, or only one is large enough, it is that one.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from tfmemtop.engine.sources.place import Namespace, pid_namespace, uses_gpu
from tfmemtop.events import Allocator, Device, DeviceProcess, DeviceReading, Effective, Event, HookEnd, SharesMissing

_LISTED_AFTER_S = 3.0
"""From this long after TensorFlow has made its devices, the driver lists the process in every reading."""

_NEGLIGIBLE = 256 * 1024 * 1024  # bytes on a card that no process need account for


@dataclass
class _Holder:
    """A hooked process: where it holds memory and since when, and its pools of the last seconds, by device."""

    places: dict[str, tuple[str, float]] = field(default_factory=dict)
    pools: dict[str, "deque[tuple[float, int]]"] = field(default_factory=dict)

    def read(self, device: str, now: float, size: int) -> None:
        """A pool has *size* bytes."""
        pools = self.pools.setdefault(device, deque())
        pools.append((now, size))
        while pools[0][0] < now - _LISTED_AFTER_S and len(pools) > 1:
            pools.popleft()

    def least(self, uuid: str, now: float) -> int | None:
        """Bytes that it surely holds on the GPU *uuid*; ``None`` if it need not be listed there yet."""
        here = [device for device, (where, since) in self.places.items() if where == uuid]
        if not any(now - self.places[device][1] > _LISTED_AFTER_S for device in here):
            return None
        return sum(min((size for _, size in self.pools.get(device, ())), default=0) for device in here)


def tell_apart(sizes: dict[int, int | None], holders: dict[int, int]) -> dict[int, int]:
    """The number here of each listed process for which it is certain, by its listed number.

    *sizes* are what each listed process holds, *holders* what each of ours holds at the least, in bytes. Each of
    ours is among the listed.
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
    """Puts the numbers of this namespace into the driver's readings, by what the hooks have reported until then.

    *here* gives the processes of here that may use a GPU without a hook.
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
        self._known: dict[int, dict[int, int]] = {}  # likewise: numbers of the driver's that are certain to be ours
        self._placed: dict[int, set[int]] = {}  # likewise: processes of here that are accounted for

    def take(self, event: Event) -> None:
        """Follow the stream."""
        match event:
            case Device():
                self._uuids[event.index] = event.uuid
            case Effective(uuid=str(uuid)):
                holder = self._holders.setdefault(event.pid, _Holder())
                holder.places.setdefault(event.device, (uuid, self._clock()))
            case Allocator() if event.pid in self._holders:
                size = max(event.pool or 0, event.in_use or 0)
                self._holders[event.pid].read(event.device, self._clock(), size)
            case HookEnd():
                self._holders.pop(event.pid, None)
            case _:
                pass

    def translate(self, reading: DeviceReading) -> DeviceReading:
        """*reading* with the numbers of this namespace; ``outside`` is the memory of all processes outside it."""
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
        """Whether a process here uses a GPU and is not yet found on any: one of the other listed ones may be it."""
        placed = set[int]().union(*self._placed.values(), self._holders, {os.getpid()})
        return any(self._is_local(pid) for pid in self._here() if pid not in placed)


def _told(reading: DeviceReading, rows: list[DeviceProcess], untold: bool) -> DeviceReading:
    # Some drivers say 0 of a process whose size they look up under the wrong number; a process here holds a context.
    rows = [msgspec.structs.replace(row, used=None) if row.used == 0 else row for row in rows]
    rows.sort(key=lambda row: (-(row.used or 0), row.pid))
    missing, outside = reading.processes_missing, None
    if missing not in (None, SharesMissing.NAMES_NONE):
        pass  # no process's figures can be read, here or outside
    elif untold:
        missing = SharesMissing.NUMBERED_OTHERWISE
    elif any(row.used is None for row in rows):
        missing = SharesMissing.NOT_TOLD_IN_CONTAINER
    elif reading.used is not None:
        left = reading.used - sum(row.used or 0 for row in rows)
        missing, outside = None, left if left > _NEGLIGIBLE else None
    return msgspec.structs.replace(reading, processes=rows, processes_missing=missing, outside=outside)
