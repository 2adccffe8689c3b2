"""``tfmemtop --once``: one reading of the GPUs and the processes on them, as a table or as events."""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Iterator

from tfmemtop.commands.arguments import Arguments
from tfmemtop.engine.host import Host
from tfmemtop.engine.launch import Launch
from tfmemtop.engine.nvml import Nvml
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
from tfmemtop.units import UNKNOWN, format_short

_CPU_SPAN_S = 0.2


def run(arguments: Arguments) -> int:
    """Print the reading on stdout; what could not be read is said on stderr. 0, with no GPU too."""
    events, troubles = read()
    for trouble in troubles:
        print("tfmemtop:", trouble, file=sys.stderr)
    if arguments.json:
        for event in events:
            print(encode(event).decode())
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in table(events):
            print(line[:width])
    return 0


def read() -> tuple[list[AnyEvent], list[str]]:
    """One reading as the events of a session that only watched, and what the user should know of it."""
    session = describe(Launch(argv=[], cwd="", environment={}), "once", None)
    nvml = Nvml()
    reading = nvml.read()
    on_gpus = {process.pid for device in reading.readings for process in device.processes}
    host = Host(os.getpid(), INJECT)
    sweep = host.sweep(on_gpus, 0, frozenset())
    processes = sweep.processes
    if on_gpus:
        time.sleep(_CPU_SPAN_S)  # the share of a CPU is one of a span of time
        sweep = host.sweep(on_gpus, 0, frozenset())
    nvml.close()
    events: list[AnyEvent] = [session, *reading.devices, *reading.readings, *processes, sweep.readings]
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
                device.name,
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
                    process.user if process else UNKNOWN,
                    format_short(share.used),
                    _figure(share.sm),
                    _figure(share.bandwidth),
                    _figure(figure.cpu if figure else None),
                    format_short(figure.rss if figure else None),
                    _harmless(shlex.join(process.command)) if process else UNKNOWN,
                ]
            )
    yield from _aligned(gpus, left={1})
    yield ""
    yield from _aligned(rows, left={2, 8})
    for reading in readings:
        if reading.processes_missing:
            yield f"GPU {reading.index}: {reading.processes_missing}"


def _figure(value: float | None, unit: str = "") -> str:
    return UNKNOWN if value is None else f"{value:.0f}{unit}"


def _harmless(text: str) -> str:
    """Without the control characters by which a process's name could steer the terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _aligned(rows: list[list[str]], left: set[int]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
