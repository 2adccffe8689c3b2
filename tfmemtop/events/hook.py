"""Events that the hooks send from inside the script's processes."""

import struct
from enum import Enum
from typing import Annotated

import msgspec

from tfmemtop.bounds import Addresses, Change, Few, Label, Name, Number, Positive, Size, Some, Text, Variables, Words
from tfmemtop.described import DescribedEnum
from tfmemtop.events.base import Curve, Event, Latest, Newest, Origin
from tfmemtop.settings import without_secrets


class Hook(Event, tag="hook", frozen=True):
    """The agent in a process describes the process, as soon as the script imports TensorFlow."""

    origin = Origin.HOOK
    keep = Latest("pid")
    urgent = True

    pid: Number
    ppid: Number
    argv: Words
    python: Name  # version
    executable: Text
    tensorflow: Name | None = None  # version, once known
    tensorflow_path: Text | None = None  # folder of the package


class HookEnding(Enum):
    """How the hook's connection ended."""

    EXIT = "exit"  # the hook announced its end
    LOST = "lost"  # it did not


class HookEnd(Event, tag="hook_end", frozen=True):
    """The hook's connection has ended."""

    origin = Origin.HOOK
    keep = Latest("pid")

    pid: Number
    reason: HookEnding
    dropped: Size = 0  # readings that the hook could not send


class Call(Enum):
    """A function of TensorFlow that sets how it makes its devices."""

    SET_MEMORY_GROWTH = "set_memory_growth"
    SET_LOGICAL_DEVICE_CONFIGURATION = "set_logical_device_configuration"
    SET_VISIBLE_DEVICES = "set_visible_devices"


class LogicalDevice(msgspec.Struct, frozen=True):
    """A logical device as the script requested it; ``None`` leaves the choice to TensorFlow."""

    limit: Size | None = None  # bytes
    priority: Number | None = None
    ordinal: Number | None = None  # its requested place among all logical devices


class Requested(Event, tag="requested", frozen=True):
    """A call by which the script requested something of TensorFlow, and its result.

    ``devices`` are the physical devices that the call names: one, or for ``set_visible_devices`` all that shall be
    visible. ``growth`` belongs to ``set_memory_growth``, ``logical`` to ``set_logical_device_configuration``,
    ``device_type`` to ``set_visible_devices``. Each is ``None`` for the other calls, and where the script passed an
    argument of another kind. ``other`` then describes such arguments for people, an object of the script by its class.
    """

    origin = Origin.HOOK
    keep = Newest(200)

    pid: Number
    call: Call
    devices: Annotated[list[Name], Few] | None
    growth: bool | None
    logical: Annotated[list[LogicalDevice], Few] | None
    device_type: Name | None
    other: Annotated[list[Text], Few]
    file: Text
    line: Number
    error: Text | None  # the exception that the call raised, as "ValueError: …"


class Initialised(Event, tag="initialised", frozen=True):
    """TensorFlow made its devices, or raised ``error`` instead: once in a process, unless it tries again.

    ``file`` and ``line`` are where the script's own code caused it, empty and 0 where no such line is known. ``code``
    is the text of that line. ``variables`` are the environment variables at that time that steer GPU memory.
    """

    origin = Origin.HOOK
    keep = Latest("pid")

    pid: Number
    file: Text
    line: Number
    code: Text = ""
    error: Text | None = None
    variables: Variables = msgspec.field(default_factory=dict)

    def recorded(self) -> "Initialised":
        return msgspec.structs.replace(self, variables=without_secrets(self.variables))


class Setting(Enum):
    """A setting of a run that tfmemtop writes into TensorFlow's options."""

    GROWTH = "growth"
    MEMORY_LIMIT = "memory_limit"


class Settled(msgspec.Struct, frozen=True):
    """A setting that the user chose for the run: tfmemtop replaced the script's value by it, or found them equal.

    ``asked`` is the script's value, ``given`` the value that TensorFlow received. For ``growth``, both are whether it
    is on. For ``memory_limit``, ``given`` is the bytes for each GPU, and ``asked`` the bytes of each logical device
    for which the script set a limit.
    """

    setting: Setting
    asked: bool | Annotated[list[Size], Few]
    given: bool | Size


class Effective(Event, tag="effective", frozen=True):
    """The options that TensorFlow uses for one logical device, once its devices are initialised."""

    origin = Origin.HOOK
    keep = Latest("pid", "device")
    urgent = True

    pid: Number
    device: Name
    physical: Number | None  # CUDA's ordinal
    uuid: Name | None  # of the physical GPU, as NVML spells it
    growth: bool | None
    limit: Positive | None
    allocator: Name | None  # bfc, cuda_malloc_async
    settled: Annotated[list[Settled], Few] = msgspec.field(default_factory=list)


class Allocator(Event, tag="allocator", frozen=True):
    """One reading of one allocator."""

    origin = Origin.HOOK
    keep = Curve("pid", "device", highest=("in_use", "high"))
    droppable = True

    pid: Number
    device: Label
    allocator: Label | None
    in_use: Size | None
    peak: Size | None
    pool: Size | None
    limit: Positive | None
    # The fields below, and the pool, are known only where pools are read in place, or with the probe.
    peak_pool: Size | None = None
    allocations: Size | None = None
    # The most bytes in use since the reading before. The probe samples it every millisecond; without the probe it is
    # known only where it is a new peak.
    high: Size | None = None


class PoolGrowth(Event, tag="pool_growth", frozen=True):
    """A pool took memory, or gave some back, ``at`` seconds into the session.

    With the probe, ``at`` is exact to a millisecond; without it, ``at`` is the time of the next reading.
    """

    origin = Origin.HOOK
    keep = Newest(256, "pid", "device")

    pid: Number
    device: Label
    at: Change
    before: Size
    after: Size


class Changed(msgspec.Struct, frozen=True, array_like=True):
    """An argument of a ``tf.function`` that differed between two tracings.

    It differed in ``tracings`` of all tracings. ``before`` and ``after`` are shape and dtype of a tensor, or a Python
    value. They are empty where there was no value, and equal where the argument was another object of the same class.
    ``argument`` may be a part of an argument: ``batch['x']``.
    """

    argument: Name
    before: Name
    after: Name
    tracings: Size


class Traced(msgspec.Struct, frozen=True, array_like=True):
    """A ``tf.function`` that the script calls, with TensorFlow's own counts.

    ``file`` and ``line`` are those of its Python function. ``steps`` is the number of steps in one call, ``None`` if
    that is not known: a call of Keras may make several. ``anew`` of the tracings were the first tracing of a function
    that was made anew from the same Python function. ``changed`` are the arguments in which the newest of the other
    tracings differed from the tracing before it. ``compiled`` if XLA compiles it, or the steps that Keras makes in it.
    """

    name: Text
    calls: Size
    traces: Size  # how many of the calls traced the function
    file: Text
    line: Number
    steps: Positive | None = 1
    anew: Size = 0
    changed: Annotated[list[Changed], Few] = msgspec.field(default_factory=list)
    compiled: bool = False


class Functions(Event, tag="functions", frozen=True):
    """The busiest functions of a process, at most 20; sent once a second where a count has changed."""

    origin = Origin.HOOK
    keep = Newest(40, "pid", first=True)  # half a minute, for the present pace; the first shows the first step
    droppable = True

    pid: Number
    functions: Annotated[list[Traced], Few]


class Variable(msgspec.Struct, frozen=True, array_like=True):
    """A variable that is alive. ``kind`` is ``variables`` (of the model or script), ``optimizer`` or ``metrics``.

    With the kind ``tensors`` it is another eager tensor. Its ``name`` is the path by which Python holds it, or empty.
    ``address`` is that of its buffer as the census was taken, 0 if it is not known.
    """

    name: Text
    kind: Name
    shape: Annotated[list[Size], Few]
    dtype: Name
    device: Name
    bytes: Size
    address: Size = 0


class Alike(msgspec.Struct, frozen=True, array_like=True):
    """A group of live tensors or variables with the same holder, such as one list, or the rows of one list.

    There are ``count`` of them, of ``bytes`` bytes together. ``holder`` is the holder's path in Python
    (``trainer.history``, ``rows[*].loss``). It is empty for those of no such holder: they are grouped by shape.
    ``shape`` is ``None`` if they have different shapes. ``kind`` is that of :class:`Variable`. ``items`` is how many
    items of the outermost list or dict on the path hold them: 14 of ``models[*]``; 0 where the path has none.
    ``packed`` has the addresses of buffers of tensors, 8 bytes each, the largest tensors first.
    """

    holder: Text
    count: Positive
    shape: Annotated[list[Size], Few] | None
    dtype: Name
    device: Name
    bytes: Size
    kind: Name = "tensors"
    items: Size = 0
    packed: Addresses = b""

    @property
    def addresses(self) -> tuple[int, ...]:
        """The addresses of buffers of the group's tensors."""
        return struct.unpack(f"<{len(self.packed) // 8}Q", self.packed[: len(self.packed) // 8 * 8])


class Gone(msgspec.Struct, frozen=True, array_like=True):
    """Variables on ``device`` that Python no longer holds: ``count`` of them, of ``bytes`` bytes together."""

    device: Name
    count: Size
    bytes: Size


class DatasetBuffer(msgspec.Struct, frozen=True, array_like=True):
    """A data set of the script's that keeps elements: its ``kind`` (``shuffle``, ``cache``, ``prefetch``).

    ``elements`` is the most elements that it keeps, ``None`` if that is not known; ``each`` is the bytes of one
    element, ``None`` if its shape is not known. With the kind ``generator``, ``elements`` is how many data sets were
    made of Python generators so far.
    """

    kind: Name
    elements: Size | None
    each: Size | None


class HostArray(msgspec.Struct, frozen=True, array_like=True):
    """A NumPy array, which lies in the host's memory. ``name`` is the path by which Python holds it."""

    name: Text
    shape: Annotated[list[Size], Few]
    dtype: Name
    bytes: Size


class CensusMoment(Enum):
    """When a census was taken."""

    USUAL = "usual"  # at its pace, or on request
    WAITING = "waiting"  # while an allocation that failed waited for room
    END = "end"  # as the script ended
    OPENED = "opened"  # as a window of allocations was opened
    CLOSED = "closed"  # as it was closed


class Unseen(DescribedEnum):
    """Why live tensors were not looked for, or which objects were left out."""

    ASYNCHRONOUS = (
        "asynchronous",
        "The script runs operations asynchronously. Asking a tensor for its shape would wait.",
    )
    REMOTE = "remote", "The script uses TensorFlow on other machines. Asking a tensor for its shape could wait."
    NOT_SHOWN = "not_shown", "Python's garbage collector does not show the tensors of this TensorFlow."
    BUSY = "busy", "Some tensors were not looked at: that would have held up the script."
    FROZEN = "frozen", "{frozen} objects that the script put aside with gc.freeze were not looked at."


class Census(Event, tag="census", frozen=True):
    """The memory of a process's variables: bytes by device and kind, and the 20 largest variables.

    ``others`` are further variables of at least 1 KiB each, up to 2 000.

    The census includes live eager tensors if they were looked for. That is done on request, and while an allocation
    that failed waits for room. Then ``tensors`` is the number of tensors found, or ``hidden`` is the reason why none
    could be found. If some were found, ``hidden`` is the reason why some objects were left out, ``frozen`` the number
    of these objects, and ``alike`` has the largest groups of tensors and variables. Such a look also finds ``tapes``,
    the number of gradient tapes that are recording or persistent.

    ``window`` is the number of the window of allocations for which it was taken, 0 if there is none.

    ``buffers`` are the data sets that keep elements, the largest 20. ``arrays`` are large NumPy arrays: those that the
    script holds, or, without a look, its global variables. ``gone`` are all variables that Python no longer holds.
    TensorFlow itself may still hold their memory.
    """

    origin = Origin.HOOK
    keep = Newest(8, "pid", "looked", "of_window", first=True)  # two for each window that is kept

    pid: Number
    kinds: Annotated[dict[Name, Annotated[dict[Name, Size], Few]], Few]
    largest: Annotated[list[Variable], Few]
    others: Annotated[list[Variable], Some] = msgspec.field(default_factory=list)
    cost_us: Size | None = None
    tensors: Size | None = None
    hidden: Unseen | None = None
    frozen: Size | None = None
    alike: Annotated[list[Alike], Few] = msgspec.field(default_factory=list)
    moment: CensusMoment = CensusMoment.USUAL
    window: Number = 0
    gone: Annotated[list[Gone], Few] = msgspec.field(default_factory=list)
    tapes: Size | None = None
    buffers: Annotated[list[DatasetBuffer], Few] = msgspec.field(default_factory=list)
    arrays: Annotated[list[HostArray], Few] = msgspec.field(default_factory=list)

    @property
    def looked(self) -> bool:
        """Whether live tensors were looked for."""
        return self.tensors is not None or self.hidden is not None

    @property
    def of_window(self) -> bool:
        """Whether it was taken for a window of allocations."""
        return self.window > 0


class Waiting(Event, tag="waiting", frozen=True):
    """A pool could not satisfy a request: where the script stands while TensorFlow tries to find room.

    ``operation`` is the operation that runs eagerly, ``None`` in a ``tf.function``. ``file`` and ``line`` are the
    script's own, and ``code`` is the text of that line; they are empty and 0 where the stack has no line of the script.
    """

    origin = Origin.HOOK
    keep = Newest(50)
    urgent = True

    pid: Number
    operation: Text | None
    file: Text
    line: Number
    code: Text = ""


class ScriptError(Event, tag="script_error", frozen=True):
    """The exception that ended the script: the name of its class, and the first line of its message.

    ``file``, ``line`` and ``code`` are the innermost line of the script's own, empty and 0 where there is none.
    """

    origin = Origin.HOOK
    keep = Latest("pid")

    pid: Number
    kind: Name
    message: Text
    file: Text = ""
    line: Number = 0
    code: Text = ""


class OutOfMemory(Event, tag="out_of_memory", frozen=True):
    """An allocation failed for good. ``message`` is TensorFlow's own; the other fields are read from it.

    If the allocation was for a tensor, ``requested`` is the bytes of that tensor, of that ``shape`` and ``dtype``.
    """

    origin = Origin.HOOK
    keep = Newest(50)
    urgent = True

    pid: Number
    message: Text
    device: Name | None = None
    requested: Size | None = None
    operation: Text | None = None
    shape: Annotated[list[Size], Few] | None = None
    dtype: Name | None = None
