"""Event streams for tests: small sessions, made of the events that an engine sends."""

from collections.abc import Iterable
from pathlib import Path

from tfmemtop import events
from tfmemtop.events.recording import Writer
from tfmemtop.frameworks import FrameworkName
from tfmemtop.settings import Settings
from tfmemtop.state import State, apply
from tfmemtop.state.history import History, Sample

MIB = 2**20
GIB = 2**30


def fold(stream: Iterable[events.Event]) -> State:
    """Return the state after *stream*."""
    state = State()
    for event in stream:
        apply(state, event)
    return state


def written(path: Path, stream: Iterable[events.Event]) -> Path:
    """Write a recording of *stream* to *path*. Return the path."""
    writer = Writer(path)
    for event in stream:
        writer.write(event)
    writer.close()
    return path


def session(command: list[str] | None = None) -> events.Session:
    return events.Session(
        t=0.0,
        format=events.FORMAT,
        version="0",
        id="abcde",
        started=1_700_000_000.0,
        host="box",
        user="ada",
        host_memory=64 * GIB,
        cores=8,
        interval_s=0.1,
        command=["python", "train.py"] if command is None else command,
        output_path="/home/ada/abcde.log",
    )


def run(t: float = 0.1, number: int = 1, pid: int = 100, settings: Settings | None = None) -> events.Run:
    return events.Run(
        t=t, run=number, pid=pid, argv=["python", "train.py"], cwd="/home/ada", settings=settings or Settings()
    )


def process(t: float, pid: int, run: int | None = 1, ppid: int = 1, command: str = "python train.py") -> events.Process:
    return events.Process(
        t=t, pid=pid, ppid=ppid, user="ada", command=command.split(), started=1_700_000_000.0 + t, run=run
    )


def device(index: int = 0, total: int = 140 * GIB) -> events.Device:
    return events.Device(t=0.2, index=index, uuid=f"GPU-{index}", name="NVIDIA H200", total=total, reserved=615 * MIB)


def device_reading(
    t: float, held: dict[int, int | None], index: int = 0, missing: events.SharesMissing | None = None
) -> events.DeviceReading:
    used = sum(size or 0 for size in held.values())
    return events.DeviceReading(
        t=t,
        index=index,
        used=used,
        free=140 * GIB - 615 * MIB - used,
        utilisation=45,
        bandwidth=22,
        power_w=269.0,
        temperature_c=42,
        processes=[events.DeviceProcess(pid, size, 40, 20) for pid, size in held.items()],
        processes_missing=missing,
    )


def alive(t: float, *pids: int) -> events.ProcessReadings:
    return events.ProcessReadings(
        t=t, processes=[events.ProcessReading(pid, 99.0, 2 * GIB) for pid in pids], host_used=8 * GIB, host_cpu=25.0
    )


def hook(t: float, pid: int, tensorflow: str | None = "2.21.0") -> events.Hook:
    return events.Hook(
        t=t, pid=pid, ppid=1, argv=["train.py"], python="3.12.3", executable="/usr/bin/python3", tensorflow=tensorflow
    )


def requested(
    t: float,
    call: events.Call,
    devices: list[str] | None,
    pid: int = 100,
    *,
    growth: bool | None = None,
    limits: list[int | None] | None = None,
    device_type: str | None = None,
    error: str | None = None,
    file: str = "/home/ada/train.py",
    line: int = 12,
) -> events.Requested:
    """Return the event of a script's call. *limits* are the limits of the logical devices, in bytes."""
    return events.Requested(
        t=t,
        pid=pid,
        call=call,
        devices=devices,
        growth=growth,
        logical=None if limits is None else [events.LogicalDevice(limit) for limit in limits],
        device_type=device_type,
        file=file,
        line=line,
        error=error,
    )


def effective(
    t: float, pid: int, name: str = "GPU:0", uuid: str | None = "GPU-0", limit: int | None = None
) -> events.Effective:
    return events.Effective(t=t, pid=pid, device=name, physical=0, uuid=uuid, growth=True, limit=limit, allocator="bfc")


def initialised() -> list[events.Event]:
    """Return the events of a run whose process 100 has initialised its devices on a GPU."""
    made = [process(0.3, 100), alive(1.0, 100), hook(1.1, 100), effective(1.2, 100)]
    return [session(), run(), device(), *made]


def allocator(
    t: float, pid: int, in_use: int, peak: int | None = None, pool: int | None = None, name: str = "GPU:0"
) -> events.Allocator:
    return events.Allocator(
        t=t, pid=pid, device=name, allocator="bfc", in_use=in_use, peak=peak or in_use, pool=pool, limit=None
    )


def framework(
    t: float,
    pid: int,
    name: FrameworkName,
    in_use: int | None,
    held: int | None,
    *,
    peak: int | None = None,
    limit: int | None = None,
    uuid: str | None = "GPU-0",
    settings: dict[str, str] | None = None,
) -> events.Framework:
    return events.Framework(
        t=t,
        pid=pid,
        framework=name,
        device=f"{name.title}:0",
        uuid=uuid,
        in_use=in_use,
        held=held,
        peak=peak,
        limit=limit,
        settings=settings or {},
    )


def columns(history: History, span_s: float, count: int, end: float) -> list[Sample | None]:
    """Return the last *span_s* seconds of *history* before *end* as *count* columns, oldest first."""
    stop = history.newest_column(span_s / count, end) + 1
    return history.read(span_s, span_s / count, stop - count, stop)
