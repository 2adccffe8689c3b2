"""What is worth saying about a run once it is over."""

import signal
from collections.abc import Iterable

from tfmemtop.events import (
    Allocator,
    AnyEvent,
    Device,
    DeviceReading,
    HookEnd,
    OutOfMemory,
    Process,
    Run,
    RunEnd,
)
from tfmemtop.state import State, apply
from tfmemtop.units import format_bytes, format_duration
from tfmemtop.verdicts import follow_rule
from tfmemtop.verdicts.memory import crashed_when_full, out_of_memory
from tfmemtop.verdicts.settings import SETTINGS_RULES


class Summary:
    """Peaks and counts, folded from a stream's events."""

    def __init__(self) -> None:
        self.readings = 0
        self.dropped = 0
        self.out_of_memory = 0
        self.peak_in_use: dict[str, int] = {}  # bytes, by TensorFlow's device
        self.peak_total: dict[int, int] = {}  # bytes of all the script's processes, by GPU
        self._names: dict[int, str] = {}
        self._pids: set[int] = set()
        self._began = 0.0
        self._now = 0.0
        self._end: RunEnd | None = None
        self._state = State()

    def add(self, event: AnyEvent) -> None:
        """Take the stream's next event."""
        self._now = event.t
        apply(self._state, event)
        match event:
            case Run():
                self._began, self._end = event.t, None
                self._pids = {event.pid}
            case RunEnd():
                self._end = event
            case Process(run=int()):
                self._pids.add(event.pid)
            case Device():
                self._names[event.index] = event.name
            case DeviceReading():
                self.readings += 1
                ours = [process.used for process in event.processes if process.pid in self._pids]
                known = [used for used in ours if used is not None]
                if known:
                    self.peak_total[event.index] = max(sum(known), self.peak_total.get(event.index, 0))
            case Allocator():
                self.readings += 1
                figures = [value for value in (event.in_use, event.peak) if value is not None]
                if figures:
                    self.peak_in_use[event.device] = max(*figures, self.peak_in_use.get(event.device, 0))
            case HookEnd():
                self.dropped += event.dropped
            case OutOfMemory():
                self.out_of_memory += 1
            case _:
                pass

    def lines(self) -> list[str]:
        """The summary, a line a fact; the first says how long it took and how it ended."""
        last = self._end.t if self._end else self._now
        lines = [f"{format_duration(last - self._began)}, {describe_end(self._end)}"]
        lines += [f"{device}: peak in use {format_bytes(peak)}" for device, peak in sorted(self.peak_in_use.items())]
        lines += [
            f"GPU {index} {self._names.get(index, '')}".rstrip() + f": peak process total {format_bytes(peak)}"
            for index, peak in sorted(self.peak_total.items())
        ]
        lines.append(f"{_count(self.readings, 'reading')}, {self.dropped} dropped")
        if self.out_of_memory:
            lines.append(_count(self.out_of_memory, "out-of-memory error"))
        worth_it = (out_of_memory, crashed_when_full, *SETTINGS_RULES)
        lines += [found.text for rule in worth_it for found in follow_rule(rule, self._state)]
        return lines


def summarise(events: Iterable[AnyEvent]) -> Summary:
    """The summary of a whole stream."""
    summary = Summary()
    for event in events:
        summary.add(event)
    return summary


def describe_end(end: RunEnd | None) -> str:
    """How a run ended, in words; without its end it was lost sight of."""
    if end is None:
        return "how it ended is not known"
    if end.signal is not None:
        try:
            name = signal.Signals(end.signal).name
        except ValueError:
            name = f"signal {end.signal}"
        return f"ended by {name}" + (" (the kernel, for host memory)" if end.oom_killed else "")
    return "how it ended is not known" if end.exit_code is None else f"ended with exit code {end.exit_code}"


def _count(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")
