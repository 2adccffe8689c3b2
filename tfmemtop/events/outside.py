"""What the engine sees from outside: the session, its runs, the GPUs, processes, the script's output."""

from typing import Literal

import msgspec

from tfmemtop.events.base import Event
from tfmemtop.settings import Settings


class Session(Event, tag="session", frozen=True):
    """The first event: who watches, where, since when."""

    format: int
    version: str
    id: str
    started: float  # seconds since the epoch, UTC
    host: str
    user: str
    host_memory: int
    cores: int
    interval_s: float  # the hook's pace
    command: list[str]  # empty when only watching
    output_path: str | None = None  # where the script's output is kept


class Run(Event, tag="run", frozen=True):
    """A start of the script."""

    run: int  # 1, 2, …
    pid: int
    argv: list[str]
    cwd: str
    settings: Settings


class RunEnd(Event, tag="run_end", frozen=True):
    """The end of a run: ``exit_code``, or ``signal`` if one ended it."""

    run: int
    exit_code: int | None
    signal: int | None
    oom_killed: bool = False  # by the kernel, for host memory


class Stopping(Event, tag="stopping", frozen=True):
    """How far the ending of a run has come.

    ``term``: asked to end, killed at ``deadline`` (in session seconds); ``kill``: killed;
    ``releasing``: gone, its GPU memory not yet; ``released``: all is free again;
    ``held``: given up waiting, ``detail`` says what is still held.
    """

    run: int
    phase: Literal["term", "kill", "releasing", "released", "held"]
    deadline: float | None = None
    detail: str = ""


class Device(Event, tag="device", frozen=True):
    """A GPU, as NVML names it."""

    index: int
    uuid: str
    name: str
    total: int | None
    reserved: int | None  # by the driver, never available
    mig: bool = False


class DeviceProcess(msgspec.Struct, frozen=True, array_like=True):
    """One process's share of one GPU: bytes held, percent of SMs and of memory bandwidth."""

    pid: int
    used: int | None
    sm: int | None = None
    bandwidth: int | None = None


class DeviceReading(Event, tag="device_reading", frozen=True):
    """What NVML says of a GPU now."""

    index: int
    used: int | None  # without `reserved`
    free: int | None
    utilisation: int | None  # percent of time a kernel ran
    bandwidth: int | None  # percent of time memory was read or written
    power_w: float | None
    temperature_c: int | None
    processes: list[DeviceProcess]
    processes_missing: str | None = None  # why per-process figures are not to be had


class Process(Event, tag="process", frozen=True):
    """A process seen for the first time: one on a GPU, or of the run."""

    pid: int
    ppid: int
    user: str
    command: list[str]
    started: float  # seconds since the epoch
    run: int | None  # the run it belongs to
    hooked_out: str | None = None  # why the hook could not get in, once that is known


class ProcessReading(msgspec.Struct, frozen=True, array_like=True):
    """CPU percent (100 = one core) and resident bytes of a process."""

    pid: int
    cpu: float | None
    rss: int | None


class ProcessReadings(Event, tag="process_readings", frozen=True):
    """All processes alive now; one that is missing here has gone."""

    processes: list[ProcessReading]
    host_used: int | None = None  # host memory in use
    host_cpu: float | None = None  # percent of all cores


class Environment(Event, tag="environment", frozen=True):
    """A process's environment, read on request; recordings keep only what steers TensorFlow."""

    pid: int
    variables: dict[str, str]
    error: str | None = None


class Output(Event, tag="output", frozen=True):
    """What the script wrote to its terminal. ``skipped`` bytes before it were left out, to keep pace."""

    run: int
    text: str
    skipped: int = 0


class Terminal(Event, tag="terminal", frozen=True):
    """The size of the script's terminal, in cells."""

    columns: int
    rows: int


class Notice(Event, tag="notice", frozen=True):
    """Something the user should know about the watching itself; an empty text takes it back.

    ``key`` names what it is about, so that a newer notice replaces an older one.
    """

    key: str
    level: Literal["info", "warning", "error"]
    text: str
    remedy: str = ""
