"""``tfmemtop --once``: prints readings of the GPUs, their processes and TensorFlow's pools.

It needs no terminal. Pools are read from outside, where the rights allow.
"""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec import json
from msgspec.structs import replace

from tfmemtop.cli.output import print_encoded, print_lines, say
from tfmemtop.engine.process.launch import INJECT
from tfmemtop.engine.sources.foreign import Foreign
from tfmemtop.engine.sources.host import TENSORFLOW_LEAST, Host, describe_session
from tfmemtop.engine.sources.nvml import Nvml
from tfmemtop.engine.sources.outside.look import Look, allocator_event, dated
from tfmemtop.engine.sources.processes import all_pids, find, has_tensorflow
from tfmemtop.events import Allocator, Device, DeviceReading, Event, Outside, Process, ProcessReadings, encode
from tfmemtop.findings.rules.attached import FROM_OUTSIDE
from tfmemtop.findings.rules.notices import say as notice_text
from tfmemtop.reports.devices import notes
from tfmemtop.safe import safe
from tfmemtop.units import UNKNOWN, aligned, format_short

E = TypeVar("E", bound=Event)

_CPU_SPAN_S = 0.2
_FILES = 4  # files that a line names


_MOST = 16  # processes of one sweep
_MOST_S, _MOST_WAITED_S = 0.2, 1.0
"""Seconds of this thread's CPU time and of wall-clock time in one sweep, after which no further process is begun.

On a machine whose processors are busy, the two differ a lot.
"""

_LOOKED_AT = 64  # processes that are checked for TensorFlow, at most


class PoolSweep:
    """Reads the pools of all TensorFlow processes that may be read, in little time. It keeps them open for the next."""

    def __init__(self) -> None:
        self._looks: dict[int, Look] = {}

    def read(self, first: Collection[int], t: float = 0.0) -> list[Event]:
        """Read the processes and return the events, those in *first* before all others.

        The number of processes and the time are bounded. *t* is the time of the events, in session seconds.
        """
        until, worked = time.monotonic() + _MOST_WAITED_S, time.thread_time() + _MOST_S
        events: list[Event] = []
        seen = 0
        kept: dict[int, Look] = {}
        for pid in self._candidates(first):
            if seen == _MOST or time.monotonic() > until or time.thread_time() > worked:
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
    return [dated(about, t), *readings]


def run(as_json: bool = False, every_s: float | None = None) -> int:
    """Print a reading on stdout, or one *every_s* seconds, and on stderr what could not be read.

    Return 0, also without a GPU.
    """
    nvml, outside, said = Nvml(), PoolSweep(), list[str]()
    while True:
        until = time.monotonic() + (every_s or 0)
        events, troubles = read(nvml, outside=outside)
        for trouble in troubles:
            if trouble not in said:
                say(trouble)
        said = troubles
        _print(events, as_json)
        if not as_json and every_s is not None:
            print_lines([""])
        if every_s is None:
            nvml.close()
            outside.close()
            return 0
        time.sleep(max(0.0, until - time.monotonic()))


def _print(events: list[Event], as_json: bool) -> None:
    if as_json:
        print_encoded(b"\n".join(map(_line, events)))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout and sys.stdout.isatty() else None
        print_lines(line[:width] for line in table(events))


def _line(event: Event) -> bytes:
    """Return the event as JSON. A reading of a pool has ``outside`` in addition, because it is read from outside."""
    if isinstance(event, Allocator):
        return json.encode(msgspec.to_builtins(event) | {"outside": True})
    return encode(event)


def read(nvml: Nvml, foreign: Foreign | None = None, outside: PoolSweep | None = None) -> tuple[list[Event], list[str]]:
    """Return one reading as events of a session that only watches, and lines about what could not be read."""
    session = describe_session("once", [], {})
    reading = nvml.read()
    foreign = foreign or Foreign(all_pids)
    readings = [foreign.translate(one) for one in reading.readings]
    on_gpus = {process.pid for device in readings for process in device.processes}
    pools = outside.read(on_gpus) if outside is not None else []
    wanted = on_gpus | {event.pid for event in pools if isinstance(event, Outside)}
    host = Host(os.getpid(), INJECT)
    sweep = host.sweep(wanted, 0, frozenset())
    processes = sweep.processes
    if readings:
        time.sleep(_CPU_SPAN_S)  # the share of a CPU, and the traffic, are measured over a span of time
        sweep = host.sweep(wanted, 0, frozenset())
        later = nvml.traffic()
        readings = [replace(one, traffic=one.traffic or later.get(one.index)) for one in readings]
    events: list[Event] = [session, *reading.devices, *readings, *processes, *pools, sweep.readings]
    troubles = [notice_text(each).line for each in reading.troubles if each.kind]
    return events, [*troubles, *_unnamed(processes)]


def _unnamed(processes: Iterable[Process]) -> Iterator[str]:
    """Yield a line if containers have no name because this user may not read files."""
    files: dict[str, None] = {}
    for process in processes:
        belongs_to = process.workload
        if belongs_to and belongs_to.contained and not (belongs_to.pod or belongs_to.name):
            files |= dict.fromkeys(process.unread)
    if files:
        yield f"containers without names: this user may not read {', '.join([*files][:_FILES])}"


def table(events: Iterable[Event]) -> Iterator[str]:
    """Yield a line for each GPU, then one for each process on a GPU, and one for each pool."""
    found = list(events)
    readings = _of(DeviceReading, found)
    pools = _of(Allocator, found)
    yield from aligned([_GPU_HEADINGS, *_gpus(found, readings)], left={1})
    yield ""
    workloads = any(process.workload for process in _of(Process, found))
    headings = [name for name in _PROCESS_HEADINGS if workloads or name != _WORKLOAD]
    left = {at for at, name in enumerate(headings) if name in _LEFT}
    yield from aligned([headings, *_processes(found, readings, workloads)], left=left)
    if pools:
        yield ""
        processes = {process.pid: process for process in _of(Process, found)}
        rows = (_pool(pool, processes.get(pool.pid)) for pool in pools)
        yield from aligned([_POOL_HEADINGS, *rows], left={1, 2, 8, 9})
    for reading in readings:
        if figures := reading.further:
            yield f"GPU {reading.index}: {'; '.join(figures)}"
        yield from (f"GPU {reading.index}: {note}" for note in notes(reading))


def _of(kind: type[E], events: Sequence[Event]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


_GPU_HEADINGS = ["GPU", "NAME", "USED", "FREE", "TOTAL", "UTIL", "MEM-BW", "POWER", "TEMP"]


def _gpus(events: Sequence[Event], readings: Iterable[DeviceReading]) -> Iterator[list[str]]:
    devices = {device.index: device for device in _of(Device, events)}
    for reading in readings:
        device = devices[reading.index]
        yield [
            str(reading.index),
            safe(device.name),
            format_short(reading.used),
            format_short(reading.free),
            format_short(device.total),
            _figure(reading.utilisation, "%"),
            _figure(reading.bandwidth, "%"),
            _figure(reading.power_w, "W"),
            _figure(reading.temperature_c, "°C"),
        ]


_WORKLOAD = "WORKLOAD"
_LEFT = ("USER", _WORKLOAD, "COMMAND")
_PROCESS_HEADINGS = ["GPU", "PID", "USER", "GPU-MEM", "%SM", "%GMBW", "%CPU", "HOST-MEM", _WORKLOAD, "COMMAND"]


def _processes(events: Sequence[Event], readings: Iterable[DeviceReading], workloads: bool) -> Iterator[list[str]]:
    processes = {process.pid: process for process in _of(Process, events)}
    figures = {figure.pid: figure for sweep in _of(ProcessReadings, events) for figure in sweep.processes}
    for reading in readings:
        for share in reading.processes:
            process, figure = processes.get(share.pid), figures.get(share.pid)
            workload = process.workload if process else None
            yield [
                str(reading.index),
                str(share.pid),
                safe(process.user) if process else UNKNOWN,
                format_short(share.used),
                _figure(share.sm),
                _figure(share.bandwidth),
                _figure(figure.cpu if figure else None),
                format_short(figure.rss if figure else None),
                *([safe(workload.short) if workload else UNKNOWN] if workloads else []),
                safe(shlex.join(process.command)) if process else UNKNOWN,
            ]


_POOL_HEADINGS = ["PID", "USER", "POOL OF", "IN USE", "PEAK", "POOL", "LIMIT", "ALLOCS", "READ", "COMMAND"]


def _pool(reading: Allocator, process: Process | None) -> list[str]:
    user, command = (process.user, shlex.join(process.command)) if process else (UNKNOWN, UNKNOWN)
    sizes = [format_short(size) for size in (reading.in_use, reading.peak, reading.pool, reading.limit)]
    figures = [*sizes, _figure(reading.allocations)]
    return [str(reading.pid), safe(user), safe(reading.device), *figures, FROM_OUTSIDE, safe(command)]


def _figure(value: float | None, unit: str = "") -> str:
    return UNKNOWN if value is None else f"{value:.0f}{unit}"
