"""Events of a session and its runs: how they begin and end, what the script writes, and how far others are read."""

import signal
from enum import Enum
from typing import Annotated

import msgspec

from tfmemtop.bounds import (
    Cells,
    Change,
    Epoch,
    Few,
    Index,
    Label,
    Many,
    Name,
    Number,
    Seconds,
    Size,
    Text,
    Variables,
    Words,
)
from tfmemtop.events.base import DescribedEnum, Event, Latest, Newest, Nothing, Tail
from tfmemtop.events.damage import Damage
from tfmemtop.exit_codes import SIGNALLED
from tfmemtop.limits import HostOwner
from tfmemtop.placement import Placement
from tfmemtop.settings import Settings, without_secrets

_BY_SOMEBODY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_SIGNALS = frozenset(signal.valid_signals())  # kept, because the call takes 0.2 ms


class Way(str, Enum):
    """What ended the run."""

    EXIT = "exit"
    SIGNAL = "signal"
    HOST_MEMORY = "host_memory"  # the kernel, because host memory ran out
    UNKNOWN = "unknown"


class Ending(msgspec.Struct, frozen=True):
    """How a run ended. ``number`` is the exit code or the signal's number, ``None`` for the other two ways."""

    way: Way
    number: int | None = None

    @property
    def known(self) -> bool:
        """Whether it was seen how the run ended: of a process that another one started, it is not."""
        return self.way is not Way.UNKNOWN

    @property
    def good(self) -> bool:
        """Whether the exit code was 0."""
        return self.way is Way.EXIT and self.number == 0

    @property
    def signal(self) -> int | None:
        """The number of the signal that ended the run, or ended the program that the run's shell started.

        ``None`` if neither is known.
        """
        if self.way is Way.SIGNAL:
            return self.number
        if self.way is Way.EXIT and self.number is not None and self.number - SIGNALLED in _SIGNALS:
            return self.number - SIGNALLED
        return None

    @property
    def by_somebody(self) -> bool:
        """Whether a signal ended the run with which a person or a scheduler ends programs: INT, TERM or HUP."""
        return self.signal in _BY_SOMEBODY


class Session(Event, tag="session", frozen=True):
    """The first event: which user's session this is, on which machine, and since when."""

    keep = Latest()
    urgent = True

    format: Number
    version: Name
    id: Name
    started: Epoch  # seconds since the epoch, UTC
    host: Name
    user: Name
    host_memory: Size  # the memory of the machine, or what cgroups allow this user's processes if that is less
    cores: Number
    interval_s: Seconds  # between two readings of the hook
    command: Words  # empty when only watching
    output_path: Text | None = None  # the file that keeps the script's output
    host_memory_of: HostOwner = HostOwner.MACHINE  # what sets `host_memory`
    holders_interval_s: Seconds | None = None  # between two windows of allocations; 0: only windows on request
    placement: Placement | None = None  # the place in a job of several processes


class CaughtUp(Event, tag="caught_up", frozen=True):
    """The reader has received all earlier events. Each reader gets an event of its own; no recording contains it."""

    keep = Nothing()


class Run(Event, tag="run", frozen=True):
    """A start of the script. With ``outside``, a process that tfmemtop did not start is read from now on.

    ``kernel`` is the connection file of a Jupyter kernel. Jupyter starts and ends the kernel. Its next start is a
    session of its own, with the next run number. ``notebook`` is the file of its notebook, if known. ``earlier`` are
    the sessions of its earlier starts, oldest first.
    ``variables`` are the environment variables that the script's text names.
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
    variables: Variables = msgspec.field(default_factory=dict)

    def recorded(self) -> "Run":
        if not self.settings.environment:
            return self
        environment = without_secrets(self.settings.environment)
        return msgspec.structs.replace(self, settings=msgspec.structs.replace(self.settings, environment=environment))


class Upcoming(Event, tag="upcoming", frozen=True):
    """The settings that were chosen for the next start of a Jupyter kernel. They are valid until others are chosen."""

    keep = Latest()
    urgent = True

    settings: Settings

    def recorded(self) -> "Upcoming":
        environment = without_secrets(self.settings.environment)
        return msgspec.structs.replace(self, settings=msgspec.structs.replace(self.settings, environment=environment))


class RunEnd(Event, tag="run_end", frozen=True):
    """The end of a run: its ``exit_code``, or the ``signal`` that ended it."""

    keep = Latest("run", most=200)
    urgent = True

    run: Number
    exit_code: Number | None
    signal: Number | None
    oom_killed: bool = False  # the kernel killed it because host memory ran out

    @property
    def ending(self) -> Ending:
        """How the run ended, as one value."""
        if self.oom_killed:
            return Ending(Way.HOST_MEMORY)
        if self.signal is not None:
            return Ending(Way.SIGNAL, self.signal)
        return Ending(Way.UNKNOWN) if self.exit_code is None else Ending(Way.EXIT, self.exit_code)

    @property
    def shell_code(self) -> int:
        """The exit code as a shell reports it; 0 if it is not known."""
        return SIGNALLED + self.signal if self.signal is not None else self.exit_code or 0


class Leftover(Enum):
    """What a run leaves behind that keeps memory from becoming free."""

    LISTED = "listed"  # the driver still lists a process of the run
    MORE_USED = "more_used"  # more of a GPU's memory is used than before the run
    PROCESSES = "processes"  # the kernel does not end its processes
    DRIVER_SILENT = "driver_silent"  # not known: the driver does not answer


class StillHeld(msgspec.Struct, frozen=True):
    """What a run still holds: ``size`` bytes on a GPU, or processes."""

    leftover: Leftover
    gpu: Index | None = None
    size: Size | None = None
    pids: Annotated[list[Number], Many] = []


class StoppingPhase(Enum):
    """How far the ending of a run has come; in brackets, which fields of :class:`Stopping` belong to it."""

    TERM = "term"  # the run received SIGTERM, and will be killed (deadline: in session seconds)
    KILL = "kill"  # the run was killed
    RELEASING = "releasing"  # the run has ended, and its GPU memory is not yet free
    RELEASED = "released"  # all memory is free again
    HELD = "held"  # the engine no longer waits, although memory or processes are left (held)


class Stopping(Event, tag="stopping", frozen=True):
    """The ending of a run has come to ``phase``."""

    keep = Latest()
    urgent = True

    run: Number
    phase: StoppingPhase
    deadline: Seconds | None = None
    held: StillHeld | None = None


class Environment(Event, tag="environment", frozen=True):
    """A process's environment, read on request. Recordings keep only the variables that steer TensorFlow."""

    keep = Nothing()
    urgent = True

    pid: Number
    variables: Variables
    error: Text | None = None

    def recorded(self) -> "Environment":
        return msgspec.structs.replace(self, variables=without_secrets(self.variables))


class Output(Event, tag="output", frozen=True):
    """What the script wrote to its terminal. ``skipped`` bytes before it were left out: they came too fast."""

    keep = Tail(64 * 1024)

    run: Number
    text: Text
    skipped: Size = 0


class AllocatorLine(Event, tag="allocator_line", frozen=True):
    """TensorFlow has logged that an allocator found no room for ``size`` bytes, ``at`` seconds into the session.

    The probe keeps such lines. One that came through the script's terminal has no ``pid``. ``operation`` is ``None``
    where TensorFlow names none. ``harmless``: the request was for scratch memory, which TensorFlow can do without.
    """

    keep = Newest(50)
    urgent = True

    pid: Number | None
    at: Change
    allocator: Label
    size: Size
    operation: Text | None = None
    harmless: bool = False


class Terminal(Event, tag="terminal", frozen=True):
    """The size of the script's terminal, in cells."""

    keep = Latest()

    columns: Cells
    rows: Cells


class OutsideState(DescribedEnum):
    """How far the reading of a process from outside has come, or what prevents it."""

    READING = "reading", "its allocators are read from outside"
    STOPPED = "stopped", "it is stopped, so its figures do not move"
    NO_TENSORFLOW = "no_tensorflow", "TensorFlow is not in it, or not yet; once it is, its pools are shown"
    NO_DEVICES = (
        "no_devices",
        "TensorFlow {version} is imported and has not initialised its devices, which it does at its first operation; "
        "its pools are shown then",
    )
    NO_POOL = (
        "no_pool",
        "TensorFlow {version} has initialised its devices, and none of its allocators keeps a pool",
        "at its next start, TF_CPU_ALLOCATOR_USE_BFC=true for the CPU; on a GPU, any allocator but cuda_malloc_async",
    )

    NO_TABLE = (
        "no_table",
        "it has TensorFlow {detail}, whose layout in memory is not known",
        "2.16 to 2.22 are known; a newer tfmemtop may know it",
    )
    NO_VERSION = (
        "no_version",
        "its TensorFlow version is not known: there is no package, or more than one, beside its library",
        "start the script as tfmemtop -- COMMAND",
    )
    REPLACED = (
        "replaced",
        "its TensorFlow was installed anew while it runs, so which version is in its memory is not known",
        "the next start of the script can be read",
    )
    NOT_FOUND = "not_found", "its allocators cannot be found: {detail}"
    NOT_SOUND = (
        "not_sound",
        "its figures are not shown, since they cannot be right: {detail}; they are looked for again",
    )

    OTHER_USER = (
        "other_user",
        "it belongs to another user, and its memory may not be read",
        "start tfmemtop as that user, or as root",
    )
    ONLY_ANCESTORS = (
        "only_ancestors",
        "this system lets a process be read only by those that started it (kernel.yama.ptrace_scope is 1)",
        "as root: sysctl kernel.yama.ptrace_scope=0, or sudo tfmemtop attach {pid}; or start the script as "
        "tfmemtop -- COMMAND",
    )
    ONLY_ROOT = (
        "only_root",
        "this system lets only root read other processes (kernel.yama.ptrace_scope is 2)",
        "sudo tfmemtop attach {pid}; or start the script as tfmemtop -- COMMAND",
    )
    NOBODY_MAY = (
        "nobody_may",
        "this system lets nobody read other processes until it is started anew (kernel.yama.ptrace_scope is 3)",
        "start the script as tfmemtop -- COMMAND",
    )
    NO_CAPABILITY = (
        "no_capability",
        "root lacks CAP_SYS_PTRACE here, as in most containers",
        "start the container with --cap-add=SYS_PTRACE, or start tfmemtop as the process's own user",
    )
    PROTECTED = (
        "protected",
        "it forbids its own user to look into it, as programs with more rights do",
        "sudo tfmemtop attach {pid}",
    )
    REFUSED = (
        "refused",
        "the kernel does not let its memory be read; a container or a security module may be why",
        "start tfmemtop where the process runs, or start the script as tfmemtop -- COMMAND",
    )

    EXECUTED = "executed", "it has become another program", "TensorFlow is looked for in that one"
    GONE = "gone", "it has ended"
    LEFT = "left", "tfmemtop has left it, and it goes on"

    @property
    def inside(self) -> bool:
        """Whether TensorFlow is in the process and its lists can be read."""
        return self in (OutsideState.READING, OutsideState.STOPPED, OutsideState.NO_DEVICES, OutsideState.NO_POOL)

    @property
    def may_change(self) -> bool:
        """Whether the process itself may come to another state, so that it should be read again."""
        waits = (OutsideState.NO_TENSORFLOW, OutsideState.EXECUTED, OutsideState.NOT_SOUND, OutsideState.NOT_FOUND)
        return self.inside or self in waits


class Outside(Event, tag="outside", frozen=True):
    """A process is read from outside: no hook is in it, and what only a hook can read is not known.

    ``tensorflow`` is TensorFlow's version, where known. ``detail`` has a child that has TensorFlow, the children that
    go on after the end, or the version whose layout is not known; ``damage`` is why nothing is found, or is not sound.
    """

    keep = Latest("pid")
    urgent = True

    pid: Number
    state: OutsideState
    detail: Text = ""
    ppid: Number = 0
    argv: Words = msgspec.field(default_factory=list)
    python: Name = ""
    executable: Text = ""
    tensorflow: Name | None = None
    tensorflow_path: Text | None = None
    damage: Damage | None = None
