"""``tfmemtop --once``: one reading of the GPUs and the processes on them, as a table or as events."""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Iterator

from tfmemtop.commands.arguments import Arguments
from tfmemtop.commands.saying import say, tell, tell_json
from tfmemtop.engine.foreign import Foreign
from tfmemtop.engine.host import Host
from tfmemtop.engine.launch import Launch
from tfmemtop.engine.nvml import Nvml
from tfmemtop.engine.procfs import all_pids
from tfmemtop.engine.run import INJECT
from tfmemtop.engine.session import describe
from tfmemtop.events import (
    AnyEvent,
    Device,
    DeviceReading,
    Process,
    ProcessReading,
    ProcessReadings,
    encode,
)
from tfmemtop.safe import safe
from tfmemtop.state.views import notes
from tfmemtop.units import UNKNOWN, format_short

_CPU_SPAN_S = 0.2


def run(arguments: Arguments) -> int:
    """Print the reading on stdout; what could not be read is said on stderr. 0, with no GPU too."""
    events, troubles = read()
    for trouble in troubles:
        say(trouble)
    if arguments.json:
        tell_json(b"\n".join(map(encode, events)))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout and sys.stdout.isatty() else None
        tell(line[:width] for line in table(events))
    return 0


def read(nvml: Nvml | None = None, foreign: Foreign | None = None) -> tuple[list[AnyEvent], list[str]]:
    """One reading as the events of a session that only watched, and what the user should know of it."""
    session = describe(Launch(argv=[], cwd="", environment={}), "once", None)
    nvml = nvml or Nvml()
    reading = nvml.read()
    foreign = foreign or Foreign(all_pids)
    readings = [foreign.translate(one) for one in reading.readings]
    on_gpus = {process.pid for device in readings for process in device.processes}
    host = Host(os.getpid(), INJECT)
    sweep = host.sweep(on_gpus, 0, frozenset())
    processes = sweep.processes
    if on_gpus:
        time.sleep(_CPU_SPAN_S)  # the share of a CPU is one of a span of time
        sweep = host.sweep(on_gpus, 0, frozenset())
    nvml.close()
    events: list[AnyEvent] = [session, *reading.devices, *readings, *processes, sweep.readings]
    troubles = [f"{t.text}; {t.remedy}" if t.remedy else t.text for t in reading.troubles if t.text]
    return events, troubles


def table(events: Iterable[AnyEvent]) -> Iterator[str]:
    """The reading's GPUs, a line each, and below them the processes on them."""
    devices: dict[int, Device] = {}
    readings: list[DeviceReading] = []
    processes: dict[int, Process] = {}
    figures: dict[int, ProcessReading] = {}
    for event in events:
        match event:
            case Device():
                devices[event.index] = event
            case DeviceReading():
                readings.append(event)
            case Process():
                processes[event.pid] = event
            case ProcessReadings():
                figures = {figure.pid: figure for figure in event.processes}
            case _:
                pass
    gpus = [["GPU", "NAME", "USED", "FREE", "TOTAL", "UTIL", "MEM-BW", "POWER", "TEMP"]]
    rows = [["GPU", "PID", "USER", "GPU-MEM", "%SM", "%GMBW", "%CPU", "HOST-MEM", "COMMAND"]]
    for reading in readings:
        device = devices[reading.index]
        gpus.append(
            [
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
        )
        for share in reading.processes:
            process, figure = processes.get(share.pid), figures.get(share.pid)
            rows.append(
                [
                    str(reading.index),
                    str(share.pid),
                    safe(process.user) if process else UNKNOWN,
                    format_short(share.used),
                    _figure(share.sm),
                    _figure(share.bandwidth),
                    _figure(figure.cpu if figure else None),
                    format_short(figure.rss if figure else None),
                    safe(shlex.join(process.command)) if process else UNKNOWN,
                ]
            )
    yield from _aligned(gpus, left={1})
    yield ""
    yield from _aligned(rows, left={2, 8})
    for reading in readings:
        yield from (f"GPU {reading.index}: {note}" for note in notes(reading))


def _figure(value: float | None, unit: str = "") -> str:
    return UNKNOWN if value is None else f"{value:.0f}{unit}"


def _aligned(rows: list[list[str]], left: set[int]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
