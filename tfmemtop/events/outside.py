"""What the engine sees from outside: the session, its runs, the GPUs, processes, the script's output."""

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Literal

import msgspec

from tfmemtop.bounds import (
    Cells,
    Change,
    Epoch,
    Few,
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
from tfmemtop.ending import Ending, how_ended
from tfmemtop.events.base import Event
from tfmemtop.events.keep import Curve, Latest, Nothing, Tail
from tfmemtop.events.secrets import without_secrets
from tfmemtop.placement import Placement
from tfmemtop.settings import Settings


class Session(Event, tag="session", frozen=True):
    """The first event: who watches, where, since when."""

    keep = Latest()
    urgent = True

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
    holders_interval_s: Seconds | None = None  # between two windows of allocations; 0: none that nobody asks for
    placement: Placement | None = None  # in a job of several processes


class CaughtUp(Event, tag="caught_up", frozen=True):
    """Tells a reader that it has what happened before it came. Each reader gets its own; no recording has it."""

    keep = Nothing()


class Run(Event, tag="run", frozen=True):
    """A start of the script. With ``outside``, a process that tfmemtop did not start is read from now on.

    ``kernel`` is the connection file of a Jupyter kernel, which Jupyter starts and ends: the next start is a session of
    its own, with the next number. ``notebook`` is its notebook's file, if known, ``earlier`` the sessions of those
    starts that came before, oldest first. ``traced``: all allocations are recorded from the start on.
    """

    keep = Latest("run", most=200)
    urgent = True

    run: Number  # 1, 2, …
    pid: Number
    argv: Words
    cwd: Text
    settings: Settings
    outside: bool = False
    kernel: Text | None = None
    notebook: Text | None = None
    earlier: Annotated[tuple[Name, ...], Few] = ()
    traced: bool = False

    def recorded(self) -> "Run":
        if not self.settings.environment:
            return self
        environment = without_secrets(self.settings.environment)
        return msgspec.structs.replace(self, settings=msgspec.structs.replace(self.settings, environment=environment))


class Upcoming(Event, tag="upcoming", frozen=True):
    """The settings that were chosen for the next start of a Jupyter kernel. They hold until others are chosen."""

    keep = Latest()
    urgent = True

    settings: Settings

    def recorded(self) -> "Upcoming":
        environment = without_secrets(self.settings.environment)
        return msgspec.structs.replace(self, settings=msgspec.structs.replace(self.settings, environment=environment))


class RunEnd(Event, tag="run_end", frozen=True):
    """The end of a run: ``exit_code``, or ``signal`` if one ended it."""

    keep = Latest("run", most=200)
    urgent = True

    run: Number
    exit_code: Number | None
    signal: Number | None
    oom_killed: bool = False  # by the kernel, for host memory

    @property
    def ending(self) -> Ending:
        """How the run ended."""
        return how_ended(self.exit_code, self.signal, self.oom_killed)


class TerminalRead(Event, tag="terminal_read", frozen=True):
    """A process of the run waits for something to be typed into the run's terminal; ``pid`` is null once none does."""

    keep = Latest()
    urgent = True

    run: Number
    pid: Number | None


class Leftover(Enum):
    """What a run leaves behind that keeps memory from becoming free."""

    LISTED = "listed"  # the driver still lists a process of it
    MORE_USED = "more_used"  # a GPU holds more than before the run
    PROCESSES = "processes"  # the kernel does not end its processes
    DRIVER_SILENT = "driver_silent"  # nobody can tell: the driver does not answer


class Held(msgspec.Struct, frozen=True):
    """What a run still holds: ``size`` bytes on a GPU, or processes."""

    leftover: Leftover
    gpu: Index | None = None
    size: Size | None = None
    pids: Annotated[list[Number], Many] = []


class Stopping(Event, tag="stopping", frozen=True):
    """How far the ending of a run has come.

    ``term``: asked to end, killed at ``deadline`` (in session seconds); ``kill``: killed;
    ``releasing``: gone, its GPU memory not yet; ``released``: all is free again;
    ``held``: given up waiting while ``held`` was not free.
    """

    keep = Latest()
    urgent = True

    run: Number
    phase: Literal["term", "kill", "releasing", "released", "held"]
    deadline: Seconds | None = None
    held: Held | None = None


class Device(Event, tag="device", frozen=True):
    """A GPU, as NVML names it."""

    keep = Latest("index")
    urgent = True

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


class SharesMissing(Enum):
    """Why the memory of a GPU is not known by process."""

    NOT_TOLD = "not_told"
    NAMES_NONE = "names_none"  # memory is in use, and the driver lists no process
    MIG = "mig"  # the card is divided
    WSL = "wsl"
    VGPU = "vgpu"
    DRIVER_TOO_OLD = "driver_too_old"
    USER_FORBIDDEN = "user_forbidden"
    NOT_TOLD_IN_CONTAINER = "not_told_in_container"
    NUMBERED_OTHERWISE = "numbered_otherwise"  # the driver's process numbers are not those of this container


class WhyLacking(Enum):
    """Why figures of a GPU are not to be had."""

    NOT_REPORTED = "not_reported"
    NOT_OF_A_PART = "not_of_a_part"  # of a divided card (MIG)
    NOT_FOR_USER = "not_for_user"
    OLD_DRIVER = "old_driver"
    CARD_LOST = "card_lost"
    FAILED = "failed"
    IMPOSSIBLE = "impossible"  # the driver's figure cannot be


class Lacking(msgspec.Struct, frozen=True, array_like=True):
    """The ``figures`` that are not to be had for one reason; impossible ones with their value, as ``power 1e9``."""

    why: WhyLacking
    figures: Annotated[list[Name], Few]


class DeviceReading(Event, tag="device_reading", frozen=True):
    """What NVML says of a GPU now."""

    keep = Curve("index", highest=("used",))
    droppable = True

    index: Index
    used: Size | None  # without `reserved`
    free: Size | None
    utilisation: Number | None  # percent of time a kernel ran
    bandwidth: Number | None  # percent of time memory was read or written
    power_w: Change | None
    temperature_c: Number | None
    processes: Annotated[list[DeviceProcess], Many]
    processes_missing: SharesMissing | None = None
    outside: Size | None = None  # of `used`: held by processes outside this container, where that is much
    lacking: Annotated[list[Lacking], Few] = msgspec.field(default_factory=list)  # other figures
    of_host: bool = False  # `used` and `free` are the host's: the GPU has no memory of its own
    remark: Text | None = None  # the same as text, in older recordings

    def past(self, ours: Callable[[int], bool]) -> "DeviceReading":
        """Without other people's processes: of those only the newest reading matters."""
        processes = [process for process in self.processes if ours(process.pid)]
        return self if len(processes) == len(self.processes) else msgspec.structs.replace(self, processes=processes)


class Absence(Enum):
    """Why the hook is not inside a process that uses TensorFlow."""

    ISOLATED = "isolated"  # Python's option -I
    IGNORES_ENVIRONMENT = "ignores_environment"  # -E
    NO_SITE = "no_site"  # -S
    OTHER_PROGRAM = "other_program"  # the process is not a Python interpreter
    ENVIRONMENT_CLEANED = "environment_cleaned"  # PYTHONPATH does not lead to the hook
    UNREADABLE = "unreadable"  # the process is another user's
    OTHER_SESSION = "other_session"  # the hook is there, and reports to another session
    UNEXPLAINED = "unexplained"


class HookAbsence(msgspec.Struct, frozen=True):
    """The hook's absence: ``program`` or ``session`` is the name of what is why."""

    reason: Absence
    program: Name = ""
    session: Name = ""


class Process(Event, tag="process", frozen=True):
    """A process seen for the first time: one on a GPU, or of the run."""

    keep = Latest("pid")

    pid: Number
    ppid: Number
    user: Name
    command: Words
    started: Epoch  # seconds since the epoch
    run: Number | None  # the run it belongs to
    hook_absence: HookAbsence | None = None  # once it is known that the hook could not get in


class ProcessReading(msgspec.Struct, frozen=True, array_like=True):
    """CPU percent (100 = one core) and resident bytes of a process."""

    pid: Number
    cpu: Change | None
    rss: Size | None


class ProcessReadings(Event, tag="process_readings", frozen=True):
    """All processes alive now; one that is missing here has gone."""

    keep = Latest()
    droppable = True

    processes: Annotated[list[ProcessReading], Many]
    host_used: Size | None = None  # of the session's `host_memory`: what is not to be had
    host_cpu: Change | None = None  # percent of all cores


class Environment(Event, tag="environment", frozen=True):
    """A process's environment, read on request; recordings keep only what steers TensorFlow."""

    keep = Nothing()
    urgent = True

    pid: Number
    variables: Variables
    error: Text | None = None

    def recorded(self) -> "Environment":
        return msgspec.structs.replace(self, variables=without_secrets(self.variables))


class Output(Event, tag="output", frozen=True):
    """What the script wrote to its terminal. ``skipped`` bytes before it were left out, to keep pace."""

    keep = Tail(64 * 1024)

    run: Number
    text: Text
    skipped: Size = 0


class Terminal(Event, tag="terminal", frozen=True):
    """The size of the script's terminal, in cells."""

    keep = Latest()

    columns: Cells
    rows: Cells
