"""What the fold keeps: plain data, changed only by :mod:`tfmemtop.state.fold`."""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from tfmemtop import events
from tfmemtop.ending import Ending, how_ended
from tfmemtop.settings import Settings
from tfmemtop.state.curve import Curve
from tfmemtop.state.history import History, Sample
from tfmemtop.state.steps import Steps
from tfmemtop.state.sums import Sums
from tfmemtop.state.trend import Course, Trend

OUTPUT_CHARACTERS = 256 * 1024
REQUESTS_KEPT = 200
GROWTHS_KEPT = 256
RESTS_KEPT = 3
COMPLAINTS_KEPT = 16
FAILURES_KEPT = 16
WINDOWS_KEPT = 4
TRACE_PARTS_KEPT = 64
LINES_KEPT = 4096
"""Operations whose line in the script is known."""
CLUSTERS_KEPT = 64
RUNS_KEPT = 64
"""The newest: a run takes some 30 kB."""
PROCESSES_KEPT = 20_000
GONE_KEPT = 64
"""Processes of the newest run that have ended, as many as a reader that comes late is told of."""
DEVICES_KEPT = 64
"""Logical devices of one process: sixteen GPUs, each cut in three, the CPU and the pinned pools."""
NOTICES_KEPT = 64
RECENT_KEPT = 60
"""Readings of how busy a GPU and the script were: a minute at NVML's pace."""


@dataclass(slots=True)
class Pool:
    """What is known of the inside of one allocator, by the probe."""

    map: events.MemoryMap | None = None  # the newest of the whole pool
    zoom: events.MemoryMap | None = None  # the newest of one region alone
    exhausted: events.MemoryMap | None = None  # as it was when an allocation failed
    growths: deque[events.PoolGrowth] = field(default_factory=lambda: deque(maxlen=GROWTHS_KEPT))


@dataclass(slots=True)
class Windows:
    """Who allocated what in one pool: the first window of it, the newest ones, and all allocations from the start."""

    first: events.Holders | None = None
    newest: deque[events.Holders] = field(default_factory=lambda: deque(maxlen=WINDOWS_KEPT))
    trace: deque[events.Trace] = field(default_factory=lambda: deque(maxlen=TRACE_PARTS_KEPT))
    replayed: events.Replayed | None = None  # that trace, under other settings


@dataclass(slots=True)
class Context:
    """The least that a process was seen to hold on a GPU beside its pools: its CUDA context is at most that.

    ``exact`` if TensorFlow had not computed anything by then, so that there was nothing else.
    ``unconfirmed`` is NVML's newest total and its time, until the allocators tell what it was made of.
    ``recent`` is the rest at each of NVML's last readings: one of them alone may have been taken
    while a pool grew.
    """

    size: int | None = None
    exact: bool = False
    unconfirmed: tuple[int, float] | None = None
    recent: deque[int] = field(default_factory=lambda: deque(maxlen=RESTS_KEPT))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The newest readings at one moment."""

    readings: dict[str, events.Allocator]  # by logical device
    maps: dict[str, events.MemoryMap]  # likewise
    cards: dict[int, events.DeviceReading]  # by NVML index
    host_used: int | None


@dataclass(frozen=True, slots=True)
class Failure:
    """The newest allocation that failed for good; ``trends`` are those until then, by logical device."""

    error: events.OutOfMemory
    around: Surroundings
    trends: dict[str, Trend]


@dataclass(frozen=True, slots=True)
class RanOut:
    """An allocation failed for good at ``t`` seconds of the session, on a GPU's NVML index, or on the CPU.

    ``place`` is ``None`` where that is not known.
    """

    t: float
    place: int | Literal["cpu"] | None


@dataclass(frozen=True, slots=True)
class Complaint:
    """TensorFlow's own line about an allocator that ran out, in the script's output.

    ``harmless`` if that was scratch memory, which TensorFlow can do without; it does not name the operation then.
    """

    t: float
    allocator: str
    size: int
    operation: str | None = None
    harmless: bool = False


@dataclass(slots=True)
class Hooked:
    """A process with our agent inside, or read from outside: what TensorFlow was asked for there, and what it does."""

    hello: events.Hook
    outside: bool = False  # no agent is inside: what is known was read from outside
    devices: set[str] = field(default_factory=set)  # the logical ones it has named
    allocators: dict[str, events.Allocator] = field(default_factory=dict)  # by logical device
    effective: dict[str, events.Effective] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    windows: dict[str, Windows] = field(default_factory=dict)
    lines: dict[str, events.OperationLine] = field(default_factory=dict)  # by operation
    clusters: dict[int, events.XlaCluster] = field(default_factory=dict)  # by XLA's number of the module
    trends: dict[str, Trend] = field(default_factory=dict)
    host: Course = field(default_factory=Course)  # of the process's host memory
    contexts: dict[int, Context] = field(default_factory=dict)  # by NVML index
    probe: events.Probe | None = None  # of the native library
    without_probe: events.Probe | None = None  # what there is without it
    steps: Steps = field(default_factory=Steps)
    census: events.Census | None = None
    look: events.Census | None = None  # the last census in which live tensors were looked for
    initialised: events.Initialised | None = None  # the newest attempt
    requested: deque[events.Requested] = field(default_factory=lambda: deque(maxlen=REQUESTS_KEPT))
    out_of_memory: deque[events.OutOfMemory] = field(default_factory=lambda: deque(maxlen=20))
    failure: Failure | None = None
    waiting: events.Waiting | None = None  # where it stood when a pool last ran out
    dropped: int = 0
    ended: bool = False


@dataclass(slots=True)
class ProcessState:
    """A process on a GPU or of a run. ``gone`` ones are kept only while they belong to the last run."""

    seen: events.Process
    cpu: float | None = None
    rss: int | None = None
    gone: bool = False
    hooked: Hooked | None = None
    outside: events.Outside | None = None  # if it is, or was, read from outside
    injection: events.Injection | None = None  # how far it is with a hook that was to be put into it
    words: tuple[events.Process, str, str] | None = None  # of what was seen: its command line, its program


@dataclass(slots=True)
class DeviceState:
    """A GPU. The history's samples are the ends of: in use, pool, the run's processes, all used.

    ``logical`` has, by pid, the logical devices that were said to lie on it: where to look, so that nobody has to look
    through all processes. :func:`tfmemtop.state.lookup.device_of` says whether they still do.
    ``kept`` is the history of the newest run, once it has ended.
    """

    info: events.Device
    reading: events.DeviceReading | None = None
    by_pid: dict[int, events.DeviceProcess] = field(default_factory=dict)
    logical: dict[int, set[str]] = field(default_factory=dict)
    sums: Sums | None = None
    history: History = field(default_factory=History)
    kept: History | None = None
    busy: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=RECENT_KEPT))  # time, percent


@dataclass(slots=True)
class CpuPool:
    """TensorFlow's BFC allocator for the CPU, where a process uses it. Samples: in use, pool. ``kept``: see above."""

    history: History = field(default_factory=History)
    kept: History | None = None
    sums: Sums | None = None


@dataclass(slots=True)
class RunState:
    """A start of the script; ``ended`` is in session seconds, peaks are over the whole run, in bytes.

    ``effective`` is what TensorFlow did, by logical device, of the process that said so last;
    ``before``, by NVML index, what was used and free on a GPU when the run had nothing there yet;
    ``fragmentation`` that of the newest map of its largest pool; ``busy`` time and percent of a core;
    ``steps`` those of the process that has made most; ``reads_terminal`` the one that waits for input.
    ``curve`` is of the fullest GPU, from what ``held`` has of each (or of the CPU pool) as it was read last: in
    use, pool, process total.
    """

    run: int
    pid: int
    argv: list[str]
    cwd: str
    settings: Settings
    started: float
    outside: bool = False  # the process was not started by tfmemtop, which reads it from then on
    hooked: float | None = None  # when the hook was put into that process, in session seconds
    kernel: str | None = None  # the connection file of the Jupyter kernel that it is
    notebook: str | None = None  # the file of that kernel's notebook
    earlier: tuple[str, ...] = ()  # the sessions of that kernel's earlier starts
    traced: bool = False  # all its allocations are recorded, from the start on
    left: bool = False  # tfmemtop has left it, and it went on
    ended: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    oom_killed: bool = False
    stopping: events.Stopping | None = None
    stopped: bool = False  # whether it was asked to end, or killed, by tfmemtop
    peak_process_total: int | None = None
    fragmentation: float | None = None
    steps: Steps | None = None
    out_of_memory: int = 0
    ran_out: deque[RanOut] = field(default_factory=lambda: deque(maxlen=FAILURES_KEPT))  # the newest of these
    reads_terminal: int | None = None
    complaints: deque[Complaint] = field(default_factory=lambda: deque(maxlen=COMPLAINTS_KEPT))
    effective: dict[str, events.Effective] = field(default_factory=dict)
    before: dict[int, tuple[int, int]] = field(default_factory=dict)
    busy: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=RECENT_KEPT))
    curve: Curve = field(default_factory=Curve)
    held: dict[str, Sample] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)  # in use, by logical device
    pools: dict[str, int] = field(default_factory=dict)  # the largest, by logical device
    limits: dict[str, int] = field(default_factory=dict)  # the allocators' own, by logical device
    totals: dict[int, int] = field(default_factory=dict)  # the highest process total, by NVML index
    replayed: dict[str, events.Replayed] = field(default_factory=dict)  # by logical device
    dropped: int = 0  # readings that its hooks could not send
    unread: bool = False  # whether the last moments of a process are missing

    @property
    def peak_in_use(self) -> int | None:
        """Of the GPU that had most, all its logical devices together; bytes."""
        return max((*self.peaks.values(), self.curve.highest(0) or 0)) if self.peaks else None

    @property
    def peak_pool(self) -> int | None:
        """Likewise; ``None`` where not all pools are known."""
        if not self.pools or self.peaks.keys() - self.pools.keys():
            return max(self.pools.values(), default=None)
        return max((*self.pools.values(), self.curve.highest(1) or 0))

    @property
    def going(self) -> bool:
        return self.ended is None

    @property
    def ending(self) -> Ending | None:
        """How it ended; ``None`` while it runs."""
        return None if self.going else how_ended(self.exit_code, self.signal, self.oom_killed)

    @property
    def failed(self) -> bool:
        """Whether it came to a bad end that nobody asked for."""
        ending = self.ending
        return ending is not None and not (ending.good or self.stopped or ending.by_somebody)


@dataclass(slots=True)
class OutputChunk:
    number: int
    run: int
    text: str
    skipped: int


@dataclass(slots=True)
class State:
    """All that is known, as of ``now`` seconds into the session."""

    now: float = 0.0
    revision: int = 0  # events taken in
    shape: int = 0  # events that may have changed which processes there are, and what is whose
    session: events.Session | None = None
    upcoming: Settings | None = None  # chosen for the next start of a kernel
    devices: dict[int, DeviceState] = field(default_factory=dict)  # by NVML index
    by_uuid: dict[str, DeviceState] = field(default_factory=dict)  # the same
    cpu_pool: CpuPool | None = None
    processes: dict[int, ProcessState] = field(default_factory=dict)
    runs: list[RunState] = field(default_factory=list)
    notices: dict[str, events.Notice] = field(default_factory=dict)
    environments: dict[int, events.Environment] = field(default_factory=dict)  # those asked for
    output: deque[OutputChunk] = field(default_factory=deque)
    output_characters: int = 0
    output_count: int = 0  # chunks ever
    terminal: events.Terminal | None = None
    host_used: int | None = None
    host_cpu: float | None = None

    @property
    def run(self) -> RunState | None:
        """The newest run."""
        return self.runs[-1] if self.runs else None
