"""Events that the hooks send from inside the script's processes."""

from enum import Enum
from typing import Annotated

import msgspec

from tfmemtop.bounds import Change, Few, Label, Name, Number, Positive, Size, Text, Variables, Words
from tfmemtop.events.base import Curve, Event, Latest, Newest, Origin
from tfmemtop.frameworks import FrameworkName, UsedFramework
from tfmemtop.settings import without_secrets


class Hook(Event, tag="hook", frozen=True):
    """The agent in a process describes the process, as soon as the script imports TensorFlow or another framework."""

    origin = Origin.HOOK
    keep = Newest(1, "pid", first=True)  # the first is before all other events of its process
    urgent = True

    pid: Number
    ppid: Number
    argv: Words
    python: Name  # version
    executable: Text
    tensorflow: Name | None = None  # version, once known
    tensorflow_path: Text | None = None  # folder of the package
    frameworks: Annotated[list[UsedFramework], Few] = msgspec.field(default_factory=list)  # the others, imported


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
    """A function of TensorFlow that sets how it initialises its devices."""

    SET_MEMORY_GROWTH = "set_memory_growth"
    SET_LOGICAL_DEVICE_CONFIGURATION = "set_logical_device_configuration"
    SET_VISIBLE_DEVICES = "set_visible_devices"


class LogicalDevice(msgspec.Struct, frozen=True):
    """A logical device as the script requested it, with a limit in bytes; ``None`` leaves it to TensorFlow."""

    limit: Size | None = None


class Requested(Event, tag="requested", frozen=True):
    """A call by which the script requested something of TensorFlow, and its result.

    ``devices`` are the physical devices that the call names: one, or for ``set_visible_devices`` all that shall be
    visible. ``growth`` belongs to ``set_memory_growth``, ``logical`` to ``set_logical_device_configuration``,
    ``device_type`` to ``set_visible_devices``. Each is ``None`` for the other calls, and where the script passed an
    argument of another kind.
    """

    origin = Origin.HOOK
    keep = Newest(200)

    pid: Number
    call: Call
    devices: Annotated[list[Name], Few] | None
    growth: bool | None
    logical: Annotated[list[LogicalDevice], Few] | None
    device_type: Name | None
    file: Text
    line: Number
    error: Text | None  # the exception that the call raised, as "ValueError: …"


class Initialised(Event, tag="initialised", frozen=True):
    """TensorFlow initialised its devices, or raised ``error`` instead: once in a process, unless it tries again.

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


class Framework(Event, tag="framework", frozen=True):
    """One reading of what another framework holds on one GPU: JAX, PyTorch, CuPy or RMM, by its own figures.

    ``in_use`` is allocated to its arrays, ``held`` what it has taken from CUDA. ``settings`` are the environment
    variables that steer its GPU memory, as they were at the first reading.
    """

    origin = Origin.HOOK
    keep = Curve("pid", "device", highest=("in_use", "held"))
    droppable = True

    pid: Number
    framework: FrameworkName
    device: Label  # JAX:0
    uuid: Name | None  # of the GPU, as NVML spells it
    in_use: Size | None
    held: Size | None
    peak: Size | None
    limit: Size | None
    settings: Variables = msgspec.field(default_factory=dict)

    def recorded(self) -> "Framework":
        return msgspec.structs.replace(self, settings=without_secrets(self.settings))

    @property
    def pool(self) -> int | None:
        """The bytes that it holds: at least those in use, where it does not tell more."""
        return self.in_use if self.held is None else max(self.held, self.in_use or 0)


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


PHASES_KEPT = 100


class ScriptPhase(Event, tag="phase", frozen=True):
    """A phase of the script: an epoch of Keras' fit, its evaluate or predict, or a block of the script's own.

    ``number`` counts the phases of a process. ``epoch`` counts from 1 in each fit. ``began`` and ``ended`` are seconds
    of the session; ``ended`` is ``None`` while the phase goes on. ``peaks`` are the most bytes in use in that time, by
    logical device.
    """

    origin = Origin.HOOK
    keep = Latest("pid", "number", most=PHASES_KEPT)

    pid: Number
    number: Number
    name: Label
    epoch: Number | None
    began: Change
    ended: Change | None
    peaks: Annotated[dict[Label, Size], Few]

    @property
    def label(self) -> str:
        """The name with the number of the epoch: ``fit 2``, ``evaluate``."""
        return self.name if self.epoch is None else f"{self.name} {self.epoch}"


class Waiting(Event, tag="waiting", frozen=True):
    """A pool could not satisfy a request: where the script stands while TensorFlow tries to find room.

    ``operation`` is the operation that runs eagerly, ``None`` in a ``tf.function``. ``file`` and ``line`` are the
    script's own, and ``code`` is the text of that line; they are empty and 0 where the stack has no line of the script.
    ``at_once`` is how many of the script's threads run that line.
    """

    origin = Origin.HOOK
    keep = Newest(50)
    urgent = True

    pid: Number
    operation: Text | None
    file: Text
    line: Number
    code: Text = ""
    at_once: Number = 1


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
