"""Collects from the stream what the present run holds on the GPUs. Pure.

So the end of the run can wait until all of that is free.
"""

from collections.abc import Iterable, Set

from tfmemtop.events import DeviceReading, Event, Leftover, Process, ProcessReadings, Run, StillHeld
from tfmemtop.units import MIB

_NEAR = 64 * MIB


class Footprint:
    """Follows the stream: the run's processes on GPUs, and what each GPU held before it."""

    def __init__(self) -> None:
        self._used: dict[int, int] = {}  # bytes, by GPU, of the newest reading
        self._before: dict[int, int] = {}  # likewise, when the run began
        self._listed: dict[int, set[int]] = {}  # processes, by GPU, of the newest reading
        self._of_runs: set[int] = set()
        self.pids: set[int] = set()
        """Processes of the run that the driver has listed on a GPU."""

    def take(self, event: Event) -> None:
        """Take one event of the stream."""
        match event:
            case Run():
                self._before = dict(self._used)
                self.pids.clear()
            case DeviceReading():
                if event.used is not None:
                    self._used[event.index] = event.used
                    self._before.setdefault(event.index, event.used)
                self._listed[event.index] = {process.pid for process in event.processes}
            case Process():
                (self._of_runs.discard if event.run is None else self._of_runs.add)(event.pid)
            case ProcessReadings():
                self._of_runs &= {reading.pid for reading in event.processes}
                self.pids |= self._of_runs & set[int]().union(*self._listed.values())
            case _:
                pass

    def held(self, readings: Iterable[DeviceReading], ours: Set[int]) -> StillHeld | None:
        """Return what the run still holds according to *readings*, or ``None``. *ours* are all processes of the run."""
        for reading in readings:
            for process in reading.processes:
                if process.pid in ours:
                    return StillHeld(Leftover.LISTED, reading.index, process.used, [process.pid])
            before = self._before.get(reading.index)
            listed_all = reading.processes_missing is None and reading.outside is None
            if not listed_all and reading.used is not None and before is not None:
                more = reading.used - before
                if more > _NEAR:
                    return StillHeld(Leftover.MORE_USED, reading.index, more)
        return None
