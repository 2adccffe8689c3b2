"""What the hooks tell from inside the script's processes."""

from typing import Annotated, Literal

import msgspec

from tfmemtop.bounds import Change, Few, Many, Name, Number, Seconds, Share, Size, Some, Text, Variables, Words
from tfmemtop.events.base import Event


class Hook(Event, tag="hook", frozen=True):
    """The agent inside a process says who it is, as soon as the script imports TensorFlow."""

    pid: Number
    ppid: Number
    argv: Words
    python: Name  # version
    executable: Text
    tensorflow: Name | None = None  # version, once known
    tensorflow_path: Text | None = None  # folder of the package


class HookEnd(Event, tag="hook_end", frozen=True):
    """The agent has gone: ``exit`` said goodbye, ``lost`` closed without, ``exec`` became another program."""

    pid: Number
    reason: Literal["exit", "lost"]
    dropped: Size = 0  # readings the agent could not send


class HookError(Event, tag="hook_error", frozen=True):
    """Something of ours failed inside the script; the script went on."""

    pid: Number
    text: Text


class Requested(Event, tag="requested", frozen=True):
    """What the script asked TensorFlow for, and how that went."""

    pid: Number
    call: Name  # set_memory_growth, set_logical_device_configuration, set_visible_devices
    arguments: Text
    file: Text
    line: Number
    error: Text | None  # what it raised, as "ValueError: …"


class Initialised(Event, tag="initialised", frozen=True):
    """TensorFlow made its devices, or raised ``error`` in their place; once a process, unless it tries again.

    ``file`` and ``line`` of the script's own code that had it do so, empty and 0 where there is none,
    and the text of that line. ``variables`` of the environment as it then was: those that steer GPU memory.
    """

    pid: Number
    file: Text
    line: Number
    code: Text = ""
    error: Text | None = None
    variables: Variables = msgspec.field(default_factory=dict)


class Effective(Event, tag="effective", frozen=True):
    """What TensorFlow does for one logical device, once its devices are initialised."""

    pid: Number
    device: Name
    physical: Number | None  # CUDA's ordinal
    uuid: Name | None  # of the physical GPU, as NVML spells it
    growth: bool | None
    limit: Size | None
    allocator: Name | None  # bfc, cuda_malloc_async
    settled: Annotated[list[Text], Few] = msgspec.field(default_factory=list)  # what tfmemtop changed, as words


class Allocator(Event, tag="allocator", frozen=True):
    """One reading of one allocator."""

    pid: Number
    device: Name
    allocator: Name | None
    in_use: Size | None
    peak: Size | None
    pool: Size | None
    limit: Size | None
    # Like the pool, from here on known only where pools are read in place, or with the probe.
    peak_pool: Size | None = None
    allocations: Size | None = None
    # Highest in use since the reading before: with the probe to the millisecond, else only where it is a new peak.
    high: Size | None = None


class PoolGrowth(Event, tag="pool_growth", frozen=True):
    """A pool took memory for itself, or gave some back, ``at`` seconds into the session.

    With the probe to the millisecond, else when the next reading found it so.
    """

    pid: Number
    device: Name
    at: Change
    before: Size
    after: Size


class Region(msgspec.Struct, frozen=True, array_like=True):
    """A piece of address space that a pool took at once. ``cells`` of the map are its."""

    address: Size
    size: Size
    in_use: Size
    chunks: Size
    chunks_in_use: Size
    cells: Size


class Bin(msgspec.Struct, frozen=True, array_like=True):
    """All chunks from ``size`` bytes up to the next bin's."""

    number: Number
    size: Size
    chunks: Size
    chunks_in_use: Size
    bytes: Size
    bytes_in_use: Size


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """A chunk in use, and how much of it was asked for."""

    address: Size
    size: Size
    requested: Size


class MemoryMap(Event, tag="memory_map", frozen=True):
    """How a pool's address space is used.

    ``cells`` holds a byte for each cell, region after region: the share in use, 0 nothing, 255 all.
    With ``region``, its address, all cells are of that one. ``sizes[i]`` counts chunks in use of
    2**i bytes up to twice that. ``moment`` is ``out_of_memory`` for what TensorFlow wrote down when
    an allocation failed. ``missing`` says why there is no map.
    """

    pid: Number
    device: Name
    moment: Literal["live", "out_of_memory"] = "live"
    region: Size | None = None
    pool: Size = 0
    in_use: Size = 0
    chunks: Size = 0
    chunks_in_use: Size = 0
    largest_free: Size = 0
    fragmentation: Share = 0.0  # share of the free bytes that lie outside the largest free chunk
    regions_found: Size = 0  # of which at most 512 are listed
    cells: Annotated[bytes, Many] = b""
    regions: Annotated[list[Region], Some] = msgspec.field(default_factory=list)
    bins: Annotated[list[Bin], Few] = msgspec.field(default_factory=list)
    sizes: Annotated[list[Size], Few] = msgspec.field(default_factory=list)
    biggest: Annotated[list[Chunk], Few] = msgspec.field(default_factory=list)
    cost_us: Size | None = None  # of reading it, in the script's process
    pace_s: Seconds | None = None  # time to the next one, stretched where reading costs much
    missing: Text | None = None


class Chunks(Event, tag="chunks", frozen=True):
    """How a pool is cut up lies in the session's folder, for the engine to make maps of. It is published to nobody.

    ``regions`` and ``chunks``, which lie there one after the other, are each described by count, bytes of one, and
    where in it address and size are; ``chunk`` is where a chunk has the bytes asked for, number and bin.
    ``wanted`` are regions by address, ``None`` for all, and the seconds until the next map.
    """

    pid: Number
    device: Name
    pool: Size
    in_use: Size
    regions: tuple[Size, Size, Size, Size]
    chunks: tuple[Size, Size, Size, Size]
    chunk: tuple[Size, Size, Size]
    wanted: Annotated[list[tuple[Size | None, Seconds]], Few]
    cost_us: Size


class Probe(Event, tag="probe", frozen=True):
    """By which way the pools of one process are looked into.

    How far the probe is, the native library for that: ``building``, ``built`` (it waits for TensorFlow's devices),
    ``loading`` (a process that ends now was ended by it), ``loaded`` (checked, and in use), ``unavailable`` (something
    is missing that ``remedy`` brings), ``failed``. Apart from it, what there is without the probe: ``direct`` (pools
    are read in place) or ``public`` (only in use and peak are known, which TensorFlow's public API tells).
    """

    pid: Number
    state: Literal["building", "built", "loading", "loaded", "unavailable", "failed", "direct", "public"]
    text: Text = ""
    remedy: Text = ""

    @property
    def of_library(self) -> bool:
        """Whether it tells of the native library."""
        return self.state not in ("direct", "public")


class Traced(msgspec.Struct, frozen=True, array_like=True):
    """A ``tf.function`` that the script calls, by TensorFlow's own count; ``file`` and ``line`` of its Python.

    ``steps`` are those that one call takes, ``None`` if that is not known: Keras may take several.
    """

    name: Text
    calls: Size
    traces: Size  # of the calls
    file: Text
    line: Number
    steps: Size | None = 1


class Functions(Event, tag="functions", frozen=True):
    """The busiest functions of a process, at most 20; sent once a second where a count has changed."""

    pid: Number
    functions: Annotated[list[Traced], Few]


class Variable(msgspec.Struct, frozen=True, array_like=True):
    """A variable that is alive. ``kind`` is ``variables`` (of the model or script), ``optimizer`` or ``metrics``.

    Or, of kind ``tensors``, another eager tensor; ``name`` is that of the script's global for it, or empty.
    """

    name: Text
    kind: Name
    shape: Annotated[list[Size], Few]
    dtype: Name
    device: Name
    bytes: Size


class Census(Event, tag="census", frozen=True):
    """What the variables of a process take: bytes by device and kind, and the 20 largest.

    Live eager tensors are among them if they were looked for: then ``tensors`` is how many were found, or
    ``unseen`` says why none could be. With some found, ``unseen`` says where none were looked for.
    """

    pid: Number
    kinds: Annotated[dict[Name, Annotated[dict[Name, Size], Few]], Few]
    largest: Annotated[list[Variable], Few]
    cost_us: Size | None = None
    tensors: Size | None = None
    unseen: Text = ""

    @property
    def looked(self) -> bool:
        """Whether live tensors were looked for."""
        return self.tensors is not None or bool(self.unseen)


class Waiting(Event, tag="waiting", frozen=True):
    """Where the script stands while TensorFlow tries to find room: told when a pool could not satisfy a request.

    ``operation`` is the one that runs eagerly, ``None`` in a ``tf.function``; ``file``, ``line`` and its text are
    the script's own, empty and 0 where none is on the stack.
    """

    pid: Number
    operation: Text | None
    file: Text
    line: Number
    code: Text = ""


class OutOfMemory(Event, tag="out_of_memory", frozen=True):
    """An allocation failed for good; ``message`` is TensorFlow's own."""

    pid: Number
    message: Text
    device: Name | None = None
    requested: Size | None = None
    operation: Text | None = None
