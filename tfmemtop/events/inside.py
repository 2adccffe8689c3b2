"""What the hooks tell from inside the script's processes."""

from enum import Enum
from typing import Annotated, Literal

import msgspec

from tfmemtop.bounds import Change, Few, Name, Number, Size, Some, Text, Variables, Words
from tfmemtop.events.base import Event, Origin
from tfmemtop.events.keep import Curve, Latest, Newest
from tfmemtop.events.secrets import without_secrets


class Hook(Event, tag="hook", frozen=True):
    """The agent inside a process says who it is, as soon as the script imports TensorFlow."""

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


class HookEnd(Event, tag="hook_end", frozen=True):
    """The agent has gone: ``exit`` said goodbye, ``lost`` closed without, ``exec`` became another program."""

    origin = Origin.HOOK
    keep = Latest("pid")

    pid: Number
    reason: Literal["exit", "lost"]
    dropped: Size = 0  # readings the agent could not send


class Call(Enum):
    """A call of TensorFlow's that sets how its devices are made."""

    SET_MEMORY_GROWTH = "set_memory_growth"
    SET_LOGICAL_DEVICE_CONFIGURATION = "set_logical_device_configuration"
    SET_VISIBLE_DEVICES = "set_visible_devices"


class LogicalDevice(msgspec.Struct, frozen=True):
    """A logical device as the script asked for it; ``None`` leaves the choice to TensorFlow."""

    limit: Size | None = None  # bytes
    priority: Number | None = None
    ordinal: Number | None = None  # the place that the script wants it to have among all of them


class Requested(Event, tag="requested", frozen=True):
    """What the script asked TensorFlow for, and how that went.

    ``devices`` are the physical ones that the call names: one, or for ``set_visible_devices`` all that shall be
    seen. ``growth`` belongs to ``set_memory_growth``, ``logical`` to ``set_logical_device_configuration``,
    ``device_type`` to ``set_visible_devices``. Each is ``None`` for the other calls, and where the script gave
    something else; ``other`` then describes those arguments for people, an object of the script's by its class.
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
    error: Text | None  # what it raised, as "ValueError: …"


class Initialised(Event, tag="initialised", frozen=True):
    """TensorFlow made its devices, or raised ``error`` in their place; once a process, unless it tries again.

    ``file`` and ``line`` of the script's own code that had it do so, empty and 0 where there is none,
    and the text of that line. ``variables`` of the environment as it then was: those that steer GPU memory.
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
    """A setting of a run that tfmemtop puts into TensorFlow's options."""

    GROWTH = "growth"
    MEMORY_LIMIT = "memory_limit"


class Settled(msgspec.Struct, frozen=True):
    """A setting that tfmemtop changed, or kept as it was, since the user chose it.

    Of ``growth``, ``asked`` (by the script) and ``given`` are whether it is on. Of ``memory_limit``, ``given`` is
    bytes for each GPU, and ``asked`` the bytes of each logical device that the script gave a limit.
    """

    setting: Setting
    asked: bool | Annotated[list[Size], Few]
    given: bool | Size


class Effective(Event, tag="effective", frozen=True):
    """What TensorFlow does for one logical device, once its devices are initialised."""

    origin = Origin.HOOK
    keep = Latest("pid", "device")
    urgent = True

    pid: Number
    device: Name
    physical: Number | None  # CUDA's ordinal
    uuid: Name | None  # of the physical GPU, as NVML spells it
    growth: bool | None
    limit: Size | None
    allocator: Name | None  # bfc, cuda_malloc_async
    settled: Annotated[list[Settled], Few] = msgspec.field(default_factory=list)


class Allocator(Event, tag="allocator", frozen=True):
    """One reading of one allocator."""

    origin = Origin.HOOK
    keep = Curve("pid", "device", highest=("in_use", "high"))
    droppable = True

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

    origin = Origin.HOOK
    keep = Newest(256, "pid", "device")

    pid: Number
    device: Name
    at: Change
    before: Size
    after: Size


class Changed(msgspec.Struct, frozen=True, array_like=True):
    """An argument of a ``tf.function`` that differed between two tracings, as in ``tracings`` of them all.

    ``before`` and ``after`` are shape and dtype of a tensor, or a Python value; empty where there was none, and equal
    where it was another object of the same class. ``argument`` may be a part of one: ``batch['x']``.
    """

    argument: Name
    before: Name
    after: Name
    tracings: Size


class Traced(msgspec.Struct, frozen=True, array_like=True):
    """A ``tf.function`` that the script calls, by TensorFlow's own count; ``file`` and ``line`` of its Python.

    ``steps`` are those that one call takes, ``None`` if that is not known: Keras may take several. ``anew`` of the
    tracings were the first of a function that was made anew from the same Python, and ``changed`` are the arguments in
    which the newest other tracing differed from the one before.
    """

    name: Text
    calls: Size
    traces: Size  # of the calls
    file: Text
    line: Number
    steps: Size | None = 1
    anew: Size = 0
    changed: Annotated[list[Changed], Few] = msgspec.field(default_factory=list)


class Functions(Event, tag="functions", frozen=True):
    """The busiest functions of a process, at most 20; sent once a second where a count has changed."""

    origin = Origin.HOOK
    keep = Newest(40, "pid", first=True)  # half a minute, for the pace of now; the first tells of the first step
    droppable = True

    pid: Number
    functions: Annotated[list[Traced], Few]


class Variable(msgspec.Struct, frozen=True, array_like=True):
    """A variable that is alive. ``kind`` is ``variables`` (of the model or script), ``optimizer`` or ``metrics``.

    Or, of kind ``tensors``, another eager tensor; ``name`` is the path by which Python holds it, or empty.
    """

    name: Text
    kind: Name
    shape: Annotated[list[Size], Few]
    dtype: Name
    device: Name
    bytes: Size


class Alike(msgspec.Struct, frozen=True, array_like=True):
    """So many live tensors, of ``bytes`` in all, that are held alike: by one list, say, or by the rows of one.

    ``holder`` is its path in Python (``trainer.history``, ``rows[*].loss``); where it is empty, they are all that have
    one shape and are held otherwise.
    ``shape`` is ``None`` if they have several.
    """

    holder: Text
    count: Size
    shape: Annotated[list[Size], Few] | None
    dtype: Name
    device: Name
    bytes: Size


class Unseen(Enum):
    """Why live tensors were not looked for, or where not."""

    ASYNCHRONOUS = "asynchronous"  # operations of the script: to ask a tensor would wait for them
    REMOTE = "remote"  # other machines' tensors, likewise
    NOT_SHOWN = "not_shown"  # by Python's garbage collector
    FROZEN = "frozen"  # objects that the script has put aside with gc.freeze


class Census(Event, tag="census", frozen=True):
    """What the variables of a process take: bytes by device and kind, and the 20 largest.

    ``others`` are the variables beyond those that have at least 1 KiB each, up to 2 000. ``initial`` are those of which
    a TF1 session may keep the initial value, such as zeros, beside the variable itself.

    Live eager tensors are among them if they were looked for: then ``tensors`` is how many were found, or
    ``hidden`` says why none could be. With some found, ``hidden`` says where none were looked for, with ``frozen`` how
    many objects that are, and ``alike`` has the largest groups of them. ``unseen`` is a sentence of recordings made
    before that was a fact. They are looked for on demand, and while a failing allocation waits for room.
    """

    origin = Origin.HOOK
    keep = Latest("pid", "looked")

    pid: Number
    kinds: Annotated[dict[Name, Annotated[dict[Name, Size], Few]], Few]
    largest: Annotated[list[Variable], Few]
    others: Annotated[list[Variable], Some] = msgspec.field(default_factory=list)
    initial: Annotated[list[Variable], Some] = msgspec.field(default_factory=list)
    cost_us: Size | None = None
    tensors: Size | None = None
    unseen: Text = ""
    hidden: Unseen | None = None
    frozen: Size | None = None
    alike: Annotated[list[Alike], Few] = msgspec.field(default_factory=list)

    @property
    def looked(self) -> bool:
        """Whether live tensors were looked for."""
        return self.tensors is not None or self.hidden is not None or bool(self.unseen)


class Waiting(Event, tag="waiting", frozen=True):
    """Where the script stands while TensorFlow tries to find room: told when a pool could not satisfy a request.

    ``operation`` is the one that runs eagerly, ``None`` in a ``tf.function``; ``file``, ``line`` and its text are
    the script's own, empty and 0 where none is on the stack. ``requested`` are the bytes of the operation's output, of
    that ``shape`` and ``dtype``, where its arguments leave no doubt: what it waits for, if that does not fit.
    """

    origin = Origin.HOOK
    keep = Newest(50)
    urgent = True

    pid: Number
    operation: Text | None
    file: Text
    line: Number
    code: Text = ""
    requested: Size | None = None
    shape: Annotated[list[Size], Few] | None = None
    dtype: Name | None = None


class OutOfMemory(Event, tag="out_of_memory", frozen=True):
    """An allocation failed for good; ``message`` is TensorFlow's own, the rest is what it says.

    ``requested`` is the bytes of the tensor of that ``shape`` and ``dtype``, where it was for a tensor.
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
