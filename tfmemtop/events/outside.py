"""What the engine sees from outside: the session, its runs, the GPUs, processes, the script's output."""

from typing import Annotated, Literal

import msgspec

from tfmemtop.bounds import (
    Cells,
    Change,
    Epoch,
    Index,
    Many,
    Name,
    Number,
    Seconds,
    Size,
    Text,
    Variables,
    Words,
)
from tfmemtop.events.base import Event
from tfmemtop.settings import Settings


class Session(Event, tag="session", frozen=True):
    """The first event: who watches, where, since when."""

    format: Number
    version: Name
    id: Name
    started: Epoch  # seconds since the epoch, UTC
    host: Name
    user: Name
    host_memory: Size  # the least of what the machine has and what cgroups leave this user's processes
    cores: Number
    interval_s: Seconds  # the hook's pace
    command: Words  # empty when only watching
    output_path: Text | None = None  # where the script's output is kept
    host_memory_of: Literal["machine", "container", "job", "cgroup"] = "machine"  # whose `host_memory` is


class Run(Event, tag="run", frozen=True):
    """A start of the script."""

    run: Number  # 1, 2, …
    pid: Number
    argv: Words
    cwd: Text
    settings: Settings


class RunEnd(Event, tag="run_end", frozen=True):
    """The end of a run: ``exit_code``, or ``signal`` if one ended it."""

    run: Number
    exit_code: Number | None
    signal: Number | None
    oom_killed: bool = False  # by the kernel, for host memory


class Stopping(Event, tag="stopping", frozen=True):
    """How far the ending of a run has come.

    ``term``: asked to end, killed at ``deadline`` (in session seconds); ``kill``: killed;
    ``releasing``: gone, its GPU memory not yet; ``released``: all is free again;
    ``held``: given up waiting, ``detail`` says what is still held.
    """

    run: Number
    phase: Literal["term", "kill", "releasing", "released", "held"]
    deadline: Seconds | None = None
    detail: Text = ""


class Device(Event, tag="device", frozen=True):
    """A GPU, as NVML names it."""

    index: Index
    uuid: Name
    name: Name
    total: Size | None
    reserved: Size | None  # by the driver, never available
    mig: bool = False  # divided into slices, or one of them
    unified: bool = False  # its memory is the host's


class DeviceProcess(msgspec.Struct, frozen=True, array_like=True):
    """One process's share of one GPU: bytes held, percent of SMs and of memory bandwidth."""

    pid: Number
    used: Size | None
    sm: Number | None = None
    bandwidth: Number | None = None


class DeviceReading(Event, tag="device_reading", frozen=True):
    """What NVML says of a GPU now."""

    index: Index
    used: Size | None  # without `reserved`
    free: Size | None
    utilisation: Number | None  # percent of time a kernel ran
    bandwidth: Number | None  # percent of time memory was read or written
    power_w: Change | None
    temperature_c: Number | None
    processes: Annotated[list[DeviceProcess], Many]
    processes_missing: Text | None = None  # why per-process figures are not to be had
    outside: Size | None = None  # of `used`: held by processes outside this container, where that is much
    remark: Text | None = None  # why other figures are not to be had, or whose they are


class Process(Event, tag="process", frozen=True):
    """A process seen for the first time: one on a GPU, or of the run."""

    pid: Number
    ppid: Number
    user: Name
    command: Words
    started: Epoch  # seconds since the epoch
    run: Number | None  # the run it belongs to
    hooked_out: Text | None = None  # why the hook could not get in, once that is known


class ProcessReading(msgspec.Struct, frozen=True, array_like=True):
    """CPU percent (100 = one core) and resident bytes of a process."""

    pid: Number
    cpu: Change | None
    rss: Size | None


class ProcessReadings(Event, tag="process_readings", frozen=True):
    """All processes alive now; one that is missing here has gone."""

    processes: Annotated[list[ProcessReading], Many]
    host_used: Size | None = None  # of the session's `host_memory`: what is not to be had
    host_cpu: Change | None = None  # percent of all cores


class Environment(Event, tag="environment", frozen=True):
    """A process's environment, read on request; recordings keep only what steers TensorFlow."""

    pid: Number
    variables: Variables
    error: Text | None = None


class Output(Event, tag="output", frozen=True):
    """What the script wrote to its terminal. ``skipped`` bytes before it were left out, to keep pace."""

    run: Number
    text: Text
    skipped: Size = 0


class Terminal(Event, tag="terminal", frozen=True):
    """The size of the script's terminal, in cells."""

    columns: Cells
    rows: Cells


class Notice(Event, tag="notice", frozen=True):
    """Something the user should know about the watching itself; an empty text takes it back.

    ``key`` names what it is about, so that a newer notice replaces an older one.
    """

    key: Name
    level: Literal["info", "warning", "error"]
    text: Text
    remedy: Text = ""
