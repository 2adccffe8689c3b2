"""What a reader that comes late needs to fold the present, in bounded memory.

Of everything that has a latest state, the latest; of what is a curve, at most a few hundred points
over the whole time, each the highest of its share of it, so that no peak is lost.
"""

from collections import deque
from collections.abc import Iterator

import msgspec

from tfmemtop.events import (
    Allocator,
    AnyEvent,
    Census,
    Device,
    DeviceReading,
    Effective,
    Functions,
    Hook,
    HookEnd,
    HookError,
    Initialised,
    MemoryMap,
    Notice,
    OutOfMemory,
    Output,
    PoolGrowth,
    Probe,
    Process,
    ProcessReadings,
    Requested,
    Run,
    RunEnd,
    Session,
    Stopping,
    Terminal,
    Waiting,
)

POINTS = 600
"""Readings kept for one curve."""

_RUNS = 200
_DEAD_HOOKED = 64
_DEAD_POINTS = 60
_GROWTHS = 256
_COUNTS = 40
"""Counts of functions kept of a process: half a minute, for the pace of now."""

_NOTICES = 64

_OUTPUT = 64 * 1024
_OUTPUT_MERGE = 4 * 1024


class Series:
    """One curve: evenly thinned, each point the highest reading of its stretch, and the newest whole."""

    def __init__(self) -> None:
        self._points: list[Allocator | DeviceReading] = []
        self._stride = 1
        self._best: Allocator | DeviceReading | None = None
        self._count = 0
        self.last: Allocator | DeviceReading | None = None

    def add(self, reading: Allocator | DeviceReading, point: Allocator | DeviceReading) -> None:
        """Take in *reading*, of which *point* is what is kept once it is not the newest."""
        self.last = reading
        self._best = point if self._best is None else _higher(self._best, point)
        self._count += 1
        if self._count >= self._stride:
            self._points.append(self._best)
            self._best, self._count = None, 0
        self.thin(POINTS)

    def thin(self, points: int) -> None:
        """Keep at most so many *points*."""
        while len(self._points) > points:
            pairs = zip(self._points[::2], self._points[1::2], strict=False)
            odd = self._points[-1:] if len(self._points) % 2 else []
            self._points = [_higher(a, b) for a, b in pairs] + odd
            self._stride *= 2

    def __iter__(self) -> Iterator[Allocator | DeviceReading]:
        if self.last is None:
            return
        # The newest may also be a point, stripped of what is only wanted of the newest.
        yield from (point for point in self._points if point.t != self.last.t)
        if self._best is not None and self._best.t != self.last.t:
            yield self._best
        yield self.last


def _level(reading: Allocator | DeviceReading) -> int:
    if isinstance(reading, Allocator):
        return max(reading.in_use or 0, reading.high or 0)
    return reading.used or 0


def _higher(a: Allocator | DeviceReading, b: Allocator | DeviceReading) -> Allocator | DeviceReading:
    return a if _level(a) > _level(b) else b


class Backlog:
    """Folds the stream into what must be said again."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.notices: dict[str, Notice] = {}
        self._runs: dict[int, Run] = {}
        self._ends: dict[int, RunEnd] = {}
        self._stopping: Stopping | None = None
        self._terminal: Terminal | None = None
        self._devices: dict[int, Device] = {}
        self._processes: dict[int, Process] = {}
        self._readings: ProcessReadings | None = None
        self._hooks: dict[int, Hook] = {}
        self._hook_ends: dict[int, HookEnd] = {}
        self._initialised: dict[int, Initialised] = {}
        self._effective: dict[tuple[int, str], Effective] = {}
        self._series: dict[tuple[int, str], Series] = {}
        self._growths: dict[tuple[int, str], deque[PoolGrowth]] = {}
        self._maps: dict[tuple[int, str], dict[tuple[str, bool], MemoryMap]] = {}
        self._probes: dict[int, Probe] = {}  # of the library
        self._without_probe: dict[int, Probe] = {}  # what there is without it
        self._functions: dict[int, deque[Functions]] = {}
        self._censuses: dict[int, Census] = {}
        self._looks: dict[int, Census] = {}  # the last in which tensors were looked for
        self._device_series: dict[int, Series] = {}
        self._rare: dict[type, deque[AnyEvent]] = {}
        self._output: deque[Output] = deque()
        self._output_size = 0
        self._output_lost = 0
        self._alive: set[int] = set()

    def add(self, event: AnyEvent) -> None:
        """Take in one event."""
        match event:
            case Allocator():
                self._series.setdefault((event.pid, event.device), Series()).add(event, event)
            case Output():
                self._add_output(event)
            case DeviceReading():
                self._device_series.setdefault(event.index, Series()).add(event, self._stripped(event))
            case ProcessReadings():
                self._readings = event
                self._forget_the_dead({reading.pid for reading in event.processes})
            case Process():
                self._processes[event.pid] = event
            case Hook():
                self._hooks.pop(event.pid, None)
                self._hooks[event.pid] = event
                self._hook_ends.pop(event.pid, None)
            case HookEnd():
                self._hook_ends[event.pid] = event
            case Effective():
                self._effective[event.pid, event.device] = event
            case PoolGrowth():
                key = event.pid, event.device
                self._growths.setdefault(key, deque(maxlen=_GROWTHS)).append(event)
            case MemoryMap():
                maps = self._maps.setdefault((event.pid, event.device), {})
                maps[event.moment, event.region is None] = event
            case Initialised():
                self._initialised[event.pid] = event
            case Probe():
                (self._probes if event.of_library else self._without_probe)[event.pid] = event
            case Functions():
                counts = self._functions.setdefault(event.pid, deque())
                counts.append(event)
                if len(counts) > _COUNTS:
                    del counts[1]  # the first tells of the first step
            case Census():
                self._censuses[event.pid] = event
                if event.looked:
                    self._looks[event.pid] = event
            case Requested():
                self._rare.setdefault(Requested, deque(maxlen=200)).append(event)
            case OutOfMemory() | Waiting() | HookError():
                self._rare.setdefault(type(event), deque(maxlen=50)).append(event)
            case Notice():
                self.notices.pop(event.key, None)
                if event.text:
                    self.notices[event.key] = event
                if len(self.notices) > _NOTICES:
                    del self.notices[next(iter(self.notices))]
            case Session():
                self.session = event
            case Run():
                self._runs[event.run] = event
                while len(self._runs) > _RUNS:
                    oldest = next(iter(self._runs))
                    del self._runs[oldest]
                    self._ends.pop(oldest, None)
            case RunEnd():
                self._ends[event.run] = event
            case Stopping():
                self._stopping = event
            case Device():
                self._devices[event.index] = event
            case Terminal():
                self._terminal = event

    def events(self) -> list[AnyEvent]:
        """All that is kept, in the order it happened."""
        kept: list[AnyEvent] = []
        kept += [one for one in (self._stopping, self._terminal, self._readings) if one]
        for latest in (self._runs, self._ends, self._devices, self._processes, self._hooks, self._hook_ends):
            kept += latest.values()
        kept += self._probes.values()
        kept += self._without_probe.values()
        kept += self._initialised.values()
        kept += self._censuses.values()
        kept += (look for pid, look in self._looks.items() if look is not self._censuses[pid])
        for counts in self._functions.values():
            kept += counts
        for growths in self._growths.values():
            kept += growths
        for maps in self._maps.values():
            kept += maps.values()
        kept += self._effective.values()
        kept += self.notices.values()
        for rare in self._rare.values():
            kept += rare
        for series in (*self._series.values(), *self._device_series.values()):
            kept += series
        if self._output:
            first, *rest = self._output
            kept.append(msgspec.structs.replace(first, skipped=first.skipped + self._output_lost))
            kept += rest
        kept.sort(key=lambda event: event.t)
        return [self.session, *kept] if self.session else kept

    def _add_output(self, event: Output) -> None:
        last = self._output[-1] if self._output else None
        if last and last.run == event.run and not event.skipped and len(last.text) + len(event.text) < _OUTPUT_MERGE:
            self._output.pop()
            event = msgspec.structs.replace(event, text=last.text + event.text, skipped=last.skipped)
            self._output_size -= len(last.text)
        self._output.append(event)
        self._output_size += len(event.text)
        while self._output_size > _OUTPUT and len(self._output) > 1:
            gone = self._output.popleft()
            self._output_size -= len(gone.text)
            same_run = gone.run == self._output[0].run
            lost = self._output_lost + gone.skipped + len(gone.text.encode())
            self._output_lost = lost if same_run else 0

    def _stripped(self, reading: DeviceReading) -> DeviceReading:
        """Without other people's processes: of those only the newest reading matters."""
        ours = [p for p in reading.processes if (known := self._processes.get(p.pid)) and known.run is not None]
        if len(ours) == len(reading.processes):
            return reading
        return msgspec.structs.replace(reading, processes=ours)

    def _forget_the_dead(self, alive: set[int]) -> None:
        died = self._alive - alive
        self._alive = alive
        for pid in died:
            if pid not in self._hooks:
                self._processes.pop(pid, None)
        dead_hooked = [pid for pid in self._hooks if pid not in alive]
        for pid in dead_hooked[: max(0, len(dead_hooked) - _DEAD_HOOKED)]:
            for known in (
                *(self._hooks, self._hook_ends, self._processes, self._probes, self._without_probe),
                *(self._functions, self._censuses, self._looks, self._initialised),
            ):
                known.pop(pid, None)
            for of_device in (self._effective, self._series, self._growths, self._maps):
                for key in [key for key in of_device if key[0] == pid]:
                    of_device.pop(key)
        # A run that starts a child every few minutes would fill megabytes with their curves.
        newest_run = next(reversed(self._runs.values()), None)
        for (pid, _), series in self._series.items():
            if pid in died and (newest_run is None or pid != newest_run.pid):
                series.thin(_DEAD_POINTS)
        for pid in died & self._functions.keys():
            counts = self._functions[pid]
            while len(counts) > 2:
                del counts[1]
