"""What the hooks tell from inside the script's processes."""

from typing import Literal

import msgspec

from tfmemtop.events.base import Event


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
    variables: dict[str, str] = msgspec.field(default_factory=dict)


class Effective(Event, tag="effective", frozen=True):
    """What TensorFlow does for one logical device, once its devices are initialised."""

    pid: int
    device: str
    physical: int | None  # CUDA's ordinal
    uuid: str | None  # of the physical GPU, as NVML spells it
    growth: bool | None
    limit: int | None
    allocator: str | None  # bfc, cuda_malloc_async
    settled: list[str] = msgspec.field(default_factory=list)  # what tfmemtop changed, as words


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
    regions: list[Region] = msgspec.field(default_factory=list)
    bins: list[Bin] = msgspec.field(default_factory=list)
    sizes: list[int] = msgspec.field(default_factory=list)
    biggest: list[Chunk] = msgspec.field(default_factory=list)
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
