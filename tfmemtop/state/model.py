"""The state as plain data. Only the handlers in the ``fold*`` modules change it."""

from collections import deque
from typing import Literal

import msgspec

from tfmemtop import events
from tfmemtop.events.holders import MOST_PARTS
from tfmemtop.events.runs import Ending, Way
from tfmemtop.series import Series
from tfmemtop.settings import Settings
from tfmemtop.state.history import Curve, History, Sample, Trend, UseWindow, whole_use
from tfmemtop.state.steps import Steps

OUTPUT_CHARACTERS = 256 * 1024
REQUESTS_KEPT = 200
GROWTHS_KEPT = 256
RESTS_KEPT = 3
COMPLAINTS_KEPT = 128
FAILURES_KEPT = 16
WINDOWS_KEPT = 4
WINDOWS_OF_PHASES_KEPT = 16
LINES_KEPT = 4096
"""Operations whose line in the script is known."""
CLUSTERS_KEPT = 64
RETRIED_S = 15.0
"""TensorFlow tries for 10 s before it raises an error. Its lines and the maps of this time belong to the failure."""

WAIT_SEEN_S = 6.0
"""While a request waits, its pool is copied every two seconds, and one of 100,000 chunks every five. After a longer
time without a copy it waits no more."""

RUNS_KEPT = 64
"""The newest runs: one run takes 160 kB at most."""
GONE_KEPT = 64
"""Processes of the newest run that have ended: as many as a reader that connects late receives."""
NOTICES_KEPT = 64
RECENT_KEPT = 60
"""Readings of how busy a GPU and the script were: those of a minute, at NVML's rate."""


class Surroundings(msgspec.Struct, frozen=True):
    """The newest readings at one moment."""

    readings: dict[str, events.Allocator]  # by logical device
    maps: dict[str, events.MemoryMap]  # by logical device
    cards: dict[int, events.DeviceReading]  # by NVML index
    host_used: int | None


class Pool(msgspec.Struct):
    """What the probe has read of the inside of one allocator."""

    map: events.MemoryMap | None = None  # the newest of the whole pool
    zoom: events.MemoryMap | None = None  # the newest of a single region
    exhausted: events.MemoryMap | None = None  # the map at the time when an allocation failed
    short_since: float | None = None  # the time of the first such map, where one followed another within WAIT_SEEN_S
    short_among: Surroundings | None = None  # the readings of that time
    growths: deque[events.PoolGrowth] = msgspec.field(default_factory=lambda: deque(maxlen=GROWTHS_KEPT))


class PoolWindows(msgspec.Struct):
    """The recorded allocations of one pool: its first window, that with the highest peak, its newest windows, those of
    phases by their names, and the trace.
    """

    first: events.Holders | None = None
    highest: events.Holders | None = None
    newest: deque[events.Holders] = msgspec.field(default_factory=lambda: deque(maxlen=WINDOWS_KEPT))
    of_phases: dict[str, events.Holders] = msgspec.field(default_factory=dict)
    trace: deque[events.Trace] = msgspec.field(default_factory=lambda: deque(maxlen=MOST_PARTS))
    replayed: events.Replayed | None = None  # that trace, under other settings


class Measured(msgspec.Struct, frozen=True):
    """What a process had on a GPU at one moment, ``t``, while it lived.

    ``total`` is the bytes by NVML, ``card_used`` those of the whole card, ``readings`` those of the allocators, by
    logical device. ``frameworks`` are those of the other frameworks.
    """

    t: float
    total: int
    card_used: int | None
    readings: dict[str, events.Allocator]
    frameworks: tuple[events.Framework, ...] = ()

    @property
    def of_frameworks(self) -> int:
        """The bytes of the other frameworks."""
        return sum(one.pool or 0 for one in self.frameworks)

    @property
    def is_possible(self) -> bool:
        """Whether the total contains the pools. If it does not, it is of another moment than they are."""
        pools = sum(max(one.in_use or 0, one.pool or 0) for one in self.readings.values())
        return pools + self.of_frameworks <= self.total

    @property
    def rest(self) -> int | None:
        """The bytes beside all pools: context and outside; ``None`` where a pool's size is not known."""
        pools = [one.pool for one in self.readings.values()]
        return None if None in pools else self.total - sum(pool or 0 for pool in pools) - self.of_frameworks


class Context(msgspec.Struct):
    """The fewest bytes that a process was found to have on a GPU beside its pools: its CUDA context is at most that.

    ``exact`` if TensorFlow had not computed anything at that time, so that there was nothing else.
    ``unconfirmed`` is NVML's newest total, until the next readings of the allocators show the pools' part.
    ``recent`` has the total less the pools at each of NVML's last readings: a single one may have been taken while a
    pool grew. ``measured`` is the newest moment at which the total contained the pools.
    """

    size: int | None = None
    exact: bool = False
    unconfirmed: Measured | None = None
    recent: deque[int] = msgspec.field(default_factory=lambda: deque(maxlen=RESTS_KEPT))
    measured: Measured | None = None


class Failure(msgspec.Struct, frozen=True):
    """The newest allocation that failed for good.

    ``trends`` are those up to that time, by logical device; ``look`` is the newest look at the tensors up to then,
    ``census`` the newest count of the variables.
    """

    error: events.OutOfMemory
    around: Surroundings
    trends: dict[str, Trend]
    look: events.Census | None = None
    census: events.Census | None = None


class RanOut(msgspec.Struct, frozen=True):
    """An allocation failed for good at ``t`` seconds of the session.

    ``place`` is the NVML index of the GPU, or ``cpu``; ``None`` where it is not known.
    """

    t: float
    place: int | Literal["cpu"] | None


class Hooked(msgspec.Struct):
    """A process that the hook is in, or that is read from outside: what TensorFlow was requested to do, and does."""

    hello: events.Hook
    outside: bool = False  # the hook is not in it: all that is known was read from outside
    allocators: dict[str, events.Allocator] = msgspec.field(default_factory=dict)  # by logical device
    frameworks: dict[str, events.Framework] = msgspec.field(default_factory=dict)  # by device: JAX:0
    began: dict[str, float] = msgspec.field(default_factory=dict)  # when each of these was first read
    effective: dict[str, events.Effective] = msgspec.field(default_factory=dict)
    pools: dict[str, Pool] = msgspec.field(default_factory=dict)
    windows: dict[str, PoolWindows] = msgspec.field(default_factory=dict)
    lines: dict[str, events.OperationLine] = msgspec.field(default_factory=dict)  # by operation
    clusters: dict[int, events.XlaCluster] = msgspec.field(default_factory=dict)  # by XLA's number of the module
    trends: dict[str, Trend] = msgspec.field(default_factory=dict)
    host: Series[UseWindow] = msgspec.field(default_factory=whole_use)  # of the process's host memory
    contexts: dict[int, Context] = msgspec.field(default_factory=dict)  # by NVML index
    probe: events.Probe | None = None  # of the native library
    without_probe: events.Probe | None = None  # how the pools are read without it
    steps: Steps = msgspec.field(default_factory=Steps)
    census: events.Census | None = None
    look: events.Census | None = None  # the last census in which live tensors were looked for
    of_windows: list[events.Census] = msgspec.field(default_factory=list)  # those of the first and the newest windows
    at_peak: list[events.Census] = msgspec.field(default_factory=list)  # before the highest window, and after
    initialised: events.Initialised | None = None  # the newest attempt
    requested: deque[events.Requested] = msgspec.field(default_factory=lambda: deque(maxlen=REQUESTS_KEPT))
    out_of_memory: deque[events.OutOfMemory] = msgspec.field(default_factory=lambda: deque(maxlen=20))
    failure: Failure | None = None
    waiting: events.Waiting | None = None  # where it stood when a pool last ran out
    error: events.ScriptError | None = None  # the exception that ended the script
    at_end: Surroundings | None = None  # the readings of that moment, else of the end of the process
    dropped: int = 0
    ended: bool = False
    lost: float | None = None  # when its connection broke off, as if the process had crashed or was killed


class ProcessState(msgspec.Struct):
    """A process on a GPU or of a run. One that is ``gone`` is kept only while it belongs to the last run."""

    seen: events.Process
    reading: events.ProcessReading = events.ProcessReading(0, None, None)  # the newest
    rss_peak: int | None = None  # the highest of the readings
    gone: bool = False
    hooked: Hooked | None = None
    outside: events.Outside | None = None  # set if it is, or was, read from outside
    words: tuple[events.Process, str, str] | None = None  # cache for a value of `seen`: its command line, its program


class DeviceState(msgspec.Struct):
    """A GPU. A sample of its history has upper ends: in use, pool, each other framework, the run's processes, all used.

    ``kept`` is the history of the newest run, once it has ended.
    """

    info: events.Device
    reading: events.DeviceReading | None = None
    by_pid: dict[int, events.DeviceProcess] = msgspec.field(default_factory=dict)
    history: History = msgspec.field(default_factory=History)
    kept: History | None = None
    busy: deque[tuple[float, int]] = msgspec.field(default_factory=lambda: deque(maxlen=RECENT_KEPT))  # time, percent


class CpuPool(msgspec.Struct):
    """TensorFlow's BFC allocator for the CPU, where a process uses it. A sample of its history has: in use, pool.

    ``kept`` is the history of the newest run, once it has ended.
    """

    history: History = msgspec.field(default_factory=History)
    kept: History | None = None


class RunState(msgspec.Struct):
    """A start of the script. ``ended`` is in session seconds; peaks are over the whole run, in bytes.

    ``effective`` has, by logical device, the options that TensorFlow uses, of the process that reported them last.
    ``before`` has, by NVML index, the used and free bytes of a GPU when the run had no memory there yet.
    ``fragmentation`` is that of the newest map of its largest pool. ``busy`` has time and percent of a core.
    ``steps`` are those of the process that has made most.
    ``curve`` is the curve of the fullest GPU: in use, pool, process total. It is computed from ``held``, which has the
    newest figures of each GPU and of the CPU pool.
    """

    run: int
    pid: int
    argv: list[str]
    cwd: str
    settings: Settings
    started: float
    outside: bool = False  # tfmemtop did not start the process, and reads it since `started`
    kernel: str | None = None  # the connection file, if the process is a Jupyter kernel
    notebook: str | None = None  # the file of that kernel's notebook
    earlier: tuple[str, ...] = ()  # the sessions of that kernel's earlier starts
    variables: dict[str, str] = msgspec.field(default_factory=dict)  # of the environment, that the script's text names
    left: bool = False  # tfmemtop no longer reads it, and it went on
    ended: float | None = None
    end: events.RunEnd | None = None
    stopping: events.Stopping | None = None
    stopped: bool = False  # whether tfmemtop ended or killed it
    peak_process_total: int | None = None
    fragmentation: float | None = None
    steps: Steps | None = None
    out_of_memory: int = 0
    ran_out: deque[RanOut] = msgspec.field(default_factory=lambda: deque(maxlen=FAILURES_KEPT))  # the newest failures
    complaints: deque[events.AllocatorLine] = msgspec.field(default_factory=lambda: deque(maxlen=COMPLAINTS_KEPT))
    effective: dict[str, events.Effective] = msgspec.field(default_factory=dict)
    before: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)
    busy: deque[tuple[float, float]] = msgspec.field(default_factory=lambda: deque(maxlen=RECENT_KEPT))
    curve: Curve = msgspec.field(default_factory=Curve)
    held: dict[str, Sample] = msgspec.field(default_factory=dict)
    limit_on: dict[str, int] = msgspec.field(default_factory=dict)  # of all its allocators on a place, as in `held`
    peaks: dict[str, int] = msgspec.field(default_factory=dict)  # in use, by logical device
    pools: dict[str, int] = msgspec.field(default_factory=dict)  # the largest, by logical device
    limits: dict[str, int] = msgspec.field(default_factory=dict)  # the allocators' own, by logical device
    totals: dict[int, int] = msgspec.field(default_factory=dict)  # the highest process total, by NVML index
    replayed: dict[str, events.Replayed] = msgspec.field(default_factory=dict)  # by logical device
    phases: dict[tuple[int, int], events.ScriptPhase] = msgspec.field(default_factory=dict)  # by pid and number
    dropped: int = 0  # readings that its hooks could not send
    unread: bool = False  # whether the last moments of a process are missing

    @property
    def peak_in_use(self) -> int | None:
        """The peak in use, in bytes, of the GPU that had most: all its logical devices together."""
        return max((*self.peaks.values(), self.curve.highest(0) or 0)) if self.peaks else None

    @property
    def peak_pool(self) -> int | None:
        """The largest pool, in bytes, of the GPU that had most; ``None`` if no pool's size is known.

        Where only some pools' sizes are known, it is the largest of a single logical device.
        """
        if not self.pools or self.peaks.keys() - self.pools.keys():
            return max(self.pools.values(), default=None)
        return max((*self.pools.values(), self.curve.highest(1) or 0))

    @property
    def phase_peaks(self) -> dict[str, int]:
        """The most bytes in use of a pool in all phases of each name."""
        peaks: dict[str, int] = {}
        for phase in self.phases.values():
            peaks[phase.name] = max(peaks.get(phase.name, 0), *phase.peaks.values())
        return peaks

    @property
    def going(self) -> bool:
        return self.ended is None

    @property
    def ending(self) -> Ending | None:
        """How the run ended; ``None`` while it goes on."""
        return None if self.going else self.end.ending if self.end else Ending(Way.UNKNOWN)

    @property
    def failed(self) -> bool:
        """Whether the run ended badly, and neither tfmemtop nor a signal that people send to end a program ended it."""
        ending = self.ending
        return ending is not None and not (ending.good or self.stopped or ending.by_somebody)

    @property
    def crashed_on(self) -> frozenset[str]:
        """The allocators in which a request failed before the run ended badly, by the output.

        The hook reports only failures that became an error of Python's.
        """
        return frozenset(one.allocator for one in self.complaints if not one.harmless and self.failed)


class State(msgspec.Struct):
    """All that is known, as of ``now`` seconds into the session."""

    now: float = 0.0
    revision: int = 0  # the number of events applied
    session: events.Session | None = None
    upcoming: Settings | None = None  # chosen for the next start of a kernel
    devices: dict[int, DeviceState] = msgspec.field(default_factory=dict)  # by NVML index
    by_uuid: dict[str, DeviceState] = msgspec.field(default_factory=dict)  # the same
    cpu_pool: CpuPool | None = None
    processes: dict[int, ProcessState] = msgspec.field(default_factory=dict)
    runs: list[RunState] = msgspec.field(default_factory=list)
    notices: dict[str, events.Notice] = msgspec.field(default_factory=dict)
    environments: dict[int, events.Environment] = msgspec.field(default_factory=dict)  # those that were requested
    output: deque[events.Output] = msgspec.field(default_factory=deque)
    output_characters: int = 0
    output_count: int = 0  # of all events so far, with those that were dropped
    terminal: events.Terminal | None = None
    host_used: int | None = None
    host_cpu: float | None = None

    @property
    def run(self) -> RunState | None:
        """The newest run."""
        return self.runs[-1] if self.runs else None
