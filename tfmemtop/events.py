"""The vocabulary: every message and reading, in one ordered stream.

An event is one line of JSON whose ``type`` names its class below. ``t`` is seconds since the
session began, on the engine's monotonic clock. Sizes are bytes, and ``None`` (JSON ``null``) where
a value cannot be known. Devices are TensorFlow's logical ones, ``GPU:0``; ``index`` is NVML's.
The stream runs live from the engine to its readers, into recordings, and back out of them.
"""

from typing import Literal

import msgspec

from tfmemtop.settings import Settings

FORMAT = 1
"""Version of the stream's format; a reader refuses a stream with a higher one."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all events."""

    t: float


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


class Hook(Event, tag="hook", frozen=True):
    """The agent inside a process says who it is, as soon as the script imports TensorFlow."""

    pid: int
    ppid: int
    argv: list[str]
    python: str  # version
    executable: str
    tensorflow: str | None = None  # version, once known
    tensorflow_path: str | None = None  # folder of the package


class HookEnd(Event, tag="hook_end", frozen=True):
    """The agent has gone: ``exit`` said goodbye, ``lost`` closed without, ``exec`` became another program."""

    pid: int
    reason: Literal["exit", "lost"]
    dropped: int = 0  # readings the agent could not send


class HookError(Event, tag="hook_error", frozen=True):
    """Something of ours failed inside the script; the script went on."""

    pid: int
    text: str


class Requested(Event, tag="requested", frozen=True):
    """What the script asked TensorFlow for, and how that went."""

    pid: int
    call: str  # set_memory_growth, set_logical_device_configuration, set_visible_devices
    arguments: str
    file: str
    line: int
    error: str | None  # what it raised, as "ValueError: …"


class Initialised(Event, tag="initialised", frozen=True):
    """TensorFlow made its devices, or raised ``error`` in their place; once a process, unless it tries again.

    ``file`` and ``line`` of the script's own code that had it do so, empty and 0 where there is none,
    and the text of that line. ``variables`` of the environment as it then was: those that steer GPU memory.
    """

    pid: int
    file: str
    line: int
    code: str = ""
    error: str | None = None
    variables: dict[str, str] = {}


class Effective(Event, tag="effective", frozen=True):
    """What TensorFlow does for one logical device, once its devices are initialised."""

    pid: int
    device: str
    physical: int | None  # CUDA's ordinal
    uuid: str | None  # of the physical GPU, as NVML spells it
    growth: bool | None
    limit: int | None
    allocator: str | None  # bfc, cuda_malloc_async
    settled: list[str] = []  # what tfmemtop changed, as words


class Allocator(Event, tag="allocator", frozen=True):
    """One reading of one allocator."""

    pid: int
    device: str
    allocator: str | None
    in_use: int | None
    peak: int | None
    pool: int | None
    limit: int | None
    # From here on known only with the probe.
    peak_pool: int | None = None
    allocations: int | None = None
    high: int | None = None  # highest in use since the reading before, to the millisecond


class PoolGrowth(Event, tag="pool_growth", frozen=True):
    """A pool took memory for itself, or gave some back, ``at`` seconds into the session, to the millisecond."""

    pid: int
    device: str
    at: float
    before: int
    after: int


class Region(msgspec.Struct, frozen=True, array_like=True):
    """A piece of address space that a pool took at once. ``cells`` of the map are its."""

    address: int
    size: int
    in_use: int
    chunks: int
    chunks_in_use: int
    cells: int


class Bin(msgspec.Struct, frozen=True, array_like=True):
    """All chunks from ``size`` bytes up to the next bin's."""

    number: int
    size: int
    chunks: int
    chunks_in_use: int
    bytes: int
    bytes_in_use: int


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """A chunk in use, and how much of it was asked for."""

    address: int
    size: int
    requested: int


class MemoryMap(Event, tag="memory_map", frozen=True):
    """How a pool's address space is used.

    ``cells`` holds a byte for each cell, region after region: the share in use, 0 nothing, 255 all.
    With ``region``, its address, all cells are of that one. ``sizes[i]`` counts chunks in use of
    2**i bytes up to twice that. ``moment`` is ``out_of_memory`` for what TensorFlow wrote down when
    an allocation failed. ``missing`` says why there is no map.
    """

    pid: int
    device: str
    moment: Literal["live", "out_of_memory"] = "live"
    region: int | None = None
    pool: int = 0
    in_use: int = 0
    chunks: int = 0
    chunks_in_use: int = 0
    largest_free: int = 0
    fragmentation: float = 0.0  # share of the free bytes that lie outside the largest free chunk
    regions_found: int = 0  # of which at most 512 are listed
    cells: bytes = b""
    regions: list[Region] = []
    bins: list[Bin] = []
    sizes: list[int] = []
    biggest: list[Chunk] = []
    cost_us: int | None = None  # of reading it, in the script's process
    pace_s: float | None = None  # time to the next one, stretched where reading costs much
    missing: str | None = None


class Probe(Event, tag="probe", frozen=True):
    """How far the native library is that looks into the pools of one process.

    ``building``, ``built`` (it waits for TensorFlow's devices), ``loaded`` (checked, and in use),
    ``unavailable`` (something is missing that ``remedy`` brings), ``failed``.
    """

    pid: int
    state: Literal["building", "built", "loaded", "unavailable", "failed"]
    text: str = ""
    remedy: str = ""


class Traced(msgspec.Struct, frozen=True, array_like=True):
    """A ``tf.function`` that the script calls, by TensorFlow's own count; ``file`` and ``line`` of its Python.

    ``steps`` are those that one call takes, ``None`` if that is not known: Keras may take several.
    """

    name: str
    calls: int
    traces: int  # of the calls
    file: str
    line: int
    steps: int | None = 1


class Functions(Event, tag="functions", frozen=True):
    """The busiest functions of a process, at most 20; sent once a second where a count has changed."""

    pid: int
    functions: list[Traced]


class Variable(msgspec.Struct, frozen=True, array_like=True):
    """A variable that is alive. ``kind`` is ``variables`` (of the model or script), ``optimizer`` or ``metrics``.

    Or, of kind ``tensors``, another eager tensor; ``name`` is that of the script's global for it, or empty.
    """

    name: str
    kind: str
    shape: list[int]
    dtype: str
    device: str
    bytes: int


class Census(Event, tag="census", frozen=True):
    """What the variables of a process take: bytes by device and kind, and the 20 largest.

    Live eager tensors are among them if they were looked for: then ``tensors`` is how many were found, or
    ``unseen`` says why none could be. With some found, ``unseen`` says where none were looked for.
    """

    pid: int
    kinds: dict[str, dict[str, int]]
    largest: list[Variable]
    cost_us: int | None = None
    tensors: int | None = None
    unseen: str = ""

    @property
    def looked(self) -> bool:
        """Whether live tensors were looked for."""
        return self.tensors is not None or bool(self.unseen)


class Waiting(Event, tag="waiting", frozen=True):
    """Where the script stands while TensorFlow tries to find room: told when a pool could not satisfy a request.

    ``operation`` is the one that runs eagerly, ``None`` in a ``tf.function``; ``file``, ``line`` and its text are
    the script's own, empty and 0 where none is on the stack.
    """

    pid: int
    operation: str | None
    file: str
    line: int
    code: str = ""


class OutOfMemory(Event, tag="out_of_memory", frozen=True):
    """An allocation failed for good; ``message`` is TensorFlow's own."""

    pid: int
    message: str
    device: str | None = None
    requested: int | None = None
    operation: str | None = None


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


AnyEvent = (
    Session
    | Run
    | RunEnd
    | Stopping
    | Device
    | DeviceReading
    | Process
    | ProcessReadings
    | Environment
    | Hook
    | HookEnd
    | HookError
    | Requested
    | Initialised
    | Effective
    | Allocator
    | PoolGrowth
    | MemoryMap
    | Probe
    | Functions
    | Census
    | OutOfMemory
    | Waiting
    | Output
    | Terminal
    | Notice
)


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="do"):
    """Base of what a reader asks of the engine."""


class Relaunch(Command, tag="relaunch", frozen=True):
    """End the run if it still goes, wait for its memory, start the next."""

    argv: list[str]
    settings: Settings
    grace_s: float = 10.0


class Stop(Command, tag="stop", frozen=True):
    """End the run: TERM, KILL after the grace. With ``quit`` the engine ends after it."""

    grace_s: float = 10.0
    quit: bool = False


class Leave(Command, tag="leave", frozen=True):
    """The reader goes; the run goes on under its engine."""


class Signal(Command, tag="signal", frozen=True):
    """Send a signal to processes."""

    pids: list[int]
    signal: int


class Input(Command, tag="input", frozen=True):
    """Type into the script's terminal."""

    text: str


class Resize(Command, tag="resize", frozen=True):
    """Give the script's terminal a size, in cells."""

    columns: int
    rows: int


class ReadEnvironment(Command, tag="read_environment", frozen=True):
    """Ask for an :class:`Environment` event."""

    pid: int


class MapWanted(Command, tag="map_wanted", frozen=True):
    """Ask for :class:`MemoryMap` events of one pool until told otherwise; the reader's latest wish counts.

    ``pace_s`` ``None`` takes the wish back. With ``region``, its address, all cells are of that one.
    """

    pid: int
    device: str
    pace_s: float | None = 1.0
    region: int | None = None


class CensusNow(Command, tag="census_now", frozen=True):
    """Ask for a :class:`Census` event of a process; one comes every 30 s anyway where it costs little.

    With ``tensors``, of live tensors too: the script stands still for some hundredths of a second.
    """

    pid: int
    tensors: bool = False


AnyCommand = Relaunch | Stop | Leave | Signal | Input | Resize | ReadEnvironment | MapWanted | CensusNow

encode = msgspec.json.Encoder().encode
decode_event = msgspec.json.Decoder(AnyEvent).decode
decode_command = msgspec.json.Decoder(AnyCommand).decode
