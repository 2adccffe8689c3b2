"""What holds the memory in use of a pool: windows of TensorFlow's own allocation events, and values in XLA's buffers.

A **window** is a short time in which a process records its allocations. The fields ``packed`` are what
``events/allocations.py`` packs.
"""

from typing import Annotated

import msgspec

from tfmemtop.bounds import Few, Name, Number, Seconds, Size, Some, Text
from tfmemtop.events.base import DescribedEnum, Event, Latest, Newest, Origin
from tfmemtop.events.damage import Damage

MOST_PACKED = 2**19
Packed = Annotated[bytes, msgspec.Meta(max_length=MOST_PACKED)]


class Opened(DescribedEnum):
    """Why a window was opened."""

    START = "start", "with the run's start"
    INTERVAL = "interval", "by schedule"
    PEAK = "peak", "because the peak in use rose"
    FINDING = "finding", "for a finding"
    ASKED = "asked", "because the user asked for it"
    WAITING = "waiting", "because an allocation waited for room"


class Closed(DescribedEnum):
    """Why a window ended."""

    STEP = "step", ""
    TIME = "time", "no whole step: the window reached its time limit"
    EVENTS = "events", "no whole step: the window reached its limit of events"
    PROFILER = "profiler", "no whole step: the script began to profile"
    EXIT = "exit", "no whole step: the script ended"
    DISK = "disk", "no whole step: the window's file could not be written"
    MEMORY = "memory", "no whole step: no memory was left for the window"
    OPEN = "open", "no whole step yet"


class Windowless(DescribedEnum):
    """Why no window was opened."""

    NO_PROBE = "no_probe", "the probe, which records allocations, is not in this process"
    PROFILER_SERVER = (
        "profiler_server",
        "the script has started a profiler server, so that it may be profiled at any time",
    )
    SERVER = "server", "the script serves other machines, by which it may be profiled at any time"
    PROFILER = "profiler", "the script's own profiler is on"
    NO_FOLDER = "no_folder", "the session's folder is not known in this process"
    NO_EVENTS = "no_events", "the probe cannot record the events of this TensorFlow"
    NO_POOL = "no_pool", "there is no pool of TensorFlow's BFC allocator in this process"


class Holding(msgspec.Struct, frozen=True, array_like=True):
    """Allocations that are alike.

    ``operation`` is the index in ``names`` of TensorFlow's name for the operation. It is ``None`` if TensorFlow gave no
    name, or if the allocation was made before the recording. ``shape`` is ``None`` if it is not known. ``region`` is
    TensorFlow's word for the purpose of the memory: ``output``, ``temp``, ``persist``, ``dynamic``, or empty.
    ``requested`` bytes were requested, in a chunk of ``size`` bytes. ``window`` is the number of the window in which
    the memory was allocated, 0 if in none.
    """

    operation: Number | None
    shape: Annotated[list[Size], Few] | None
    dtype: Name
    region: Name
    requested: Size
    size: Size
    window: Number


class Holders(Event, tag="holders", frozen=True):
    """The allocations of one window in one pool, each from its beginning to its end.

    ``began`` and ``ended`` are seconds of the session. ``before`` are the bytes in use as the window began, ``peak``
    the most bytes in use in the window, both as TensorFlow's allocator reports. ``peak_at`` is the number of the event
    that reached the peak, counted from 0; -1 if no event went above ``before``.
    The window contains a whole step of ``function`` if ``steps`` is at least 1. Bytes of the peak may be of no span:
    ``lost`` events are missing, a chunk was not found, or there was no room for small allocations. With ``phase``, the
    event is of the fullest moment of the phase of this name, and not of the window's last step or its peak.

    ``packed`` are the :class:`~tfmemtop.events.allocations.WindowAllocations`: a step of ResNet-50 has 2 500
    allocations with as many names, 250 kB of JSON.
    """

    keep = Newest(4, "pid", "device", "phase", first=True, highest="peak")
    droppable = True

    pid: Number
    device: Name
    window: Number  # counted from 1 in each process
    opened: Opened
    closed: Closed
    began: Seconds
    ended: Seconds
    phase: Text = ""
    function: Text = ""
    steps: Seconds | None = None
    before: Size = 0
    peak: Size = 0
    peak_at: Number = -1
    lost: Size = 0
    packed: Packed = b""
    cost_us: Size | None = None  # time that the window cost the script
    windowless: Windowless | None = None
    damage: Damage | None = None  # what is wrong with the window's file
    detail: Text = ""

    @property
    def is_missing(self) -> bool:
        """Whether the event has no allocations, only the reason why."""
        return self.windowless is not None or self.damage is not None

    @property
    def opened_for(self) -> str:
        """Why the window was opened; empty for a later part of the recording that was opened with the run's start."""
        return "" if self.opened is Opened.START and self.before else self.opened.text


class OperationLine(msgspec.Struct, frozen=True, array_like=True):
    """Where the script makes an operation of a graph: the script's own ``file`` and ``line``; ``code`` is that line.

    ``stack`` has the script's calls that led there, up to eight, the innermost last, such as
    ``train_step /home/ada/train.py:31``. ``graph`` is the name that TensorFlow gives the graph: ``Dataset_map_load`` is
    that of the function ``load`` of a data set's ``map``.
    """

    operation: Text
    file: Text
    line: Number
    code: Text
    stack: Annotated[tuple[Text, ...], Few] = ()
    graph: Text = ""


class OperationLines(Event, tag="operation_lines", frozen=True):
    """The lines of the script that made operations of its graphs."""

    origin = Origin.HOOK
    keep = Newest(16, "pid")

    pid: Number
    lines: Annotated[list[OperationLine], Some]


MOST_PARTS = 64
"""The most parts of a trace."""


class Trace(Event, tag="trace", frozen=True):
    """One part of a trace: the allocations of a process in one pool, in their order, since TensorFlow made its devices.

    After the window of the start, those follow of each later window in which more was in use, if there is room.
    ``part`` counts from 0; ``last`` is true for the last part of a window. ``whole`` is false if the first window ended
    before the process had made three steps. ``packed`` are the
    :class:`~tfmemtop.events.allocations.TraceAllocations`, with ``events`` events. ``steps`` are the numbers of the
    events at which a step began, counted from 0 over the whole trace.

    Memory that was in use before the trace comes first, in the order of its addresses, as allocations of no operation.
    In the first part, ``before`` is their number.
    """

    keep = Newest(MOST_PARTS, "pid", "device")
    once = True

    pid: Number
    device: Name
    part: Number
    last: bool
    whole: bool
    events: Size
    lost: Size = 0
    before: Size = 0
    steps: Annotated[list[Size], Some] = msgspec.field(default_factory=list)
    packed: Packed = b""


class XlaValue(msgspec.Struct, frozen=True, array_like=True):
    """A value in an XLA buffer: ``size`` bytes at ``offset``, needed from moment ``first`` of the schedule to ``last``.

    ``instruction`` is XLA's name for it. ``operation`` is TensorFlow's name for what the instruction computes, or
    empty. An instruction that XLA itself has made, such as a copy, has the operation for which XLA made it. ``file``
    and ``line`` are where the script makes the operation, as far as XLA knows.
    """

    instruction: Text
    operation: Text
    shape: Text  # with the data type, as XLA writes it
    offset: Size
    size: Size
    first: Size
    last: Size
    file: Text = ""
    line: Number = 0


class XlaMissing(DescribedEnum):
    """Why there is no report of one cluster, or of all clusters."""

    UNREAD = "unread", "its form is not known (looked for: {detail})"  # detail: what was missing in it
    TOO_LARGE = "too_large", "it is too large to be read"
    USERS_FOLDER = (  # detail: those flags
        "users_folder",
        "XLA_FLAGS already has XLA write elsewhere ({detail}), and tfmemtop leaves that as it is",
    )
    # detail: its name
    USERS_FILE = "users_file", "XLA_FLAGS names a file of flags ({detail}), which tfmemtop leaves as it is"
    SCRIPTS_FLAGS = (
        "scripts_flags",
        "the script itself sets XLA_FLAGS, which replaces the flags that ask for the report",
    )
    NO_FOLDER = "no_folder", "there is no folder for it ({detail})"  # detail: the error
    # detail: how many are allowed
    TOO_MUCH = "too_much", "XLA wrote more than {detail} bytes before they could be read, and the oldest were deleted"


class XlaCluster(Event, tag="xla_cluster", frozen=True):
    """What lies in the temporary buffer of one compiled cluster, as XLA itself reports.

    ``module`` is XLA's number for the cluster in its process, -1 where the process as a whole has no report.
    ``temporary`` is the buffer's size in bytes. ``peak_at`` is the moment at which most of the buffer is needed, and
    ``peak`` the bytes that are needed then. ``values`` are the largest values at that moment, by offset.
    """

    origin = Origin.HOOK
    keep = Latest("pid", "module", most=64)

    pid: Number
    name: Text
    module: Number = 0
    temporary: Size = 0
    peak: Size = 0
    peak_at: Size = 0
    values: Annotated[list[XlaValue], Some] = msgspec.field(default_factory=list)
    missing: XlaMissing | None = None
    detail: Text = ""


class Window(msgspec.Struct, tag_field="type", tag="window", frozen=True, kw_only=True):
    """A hook's message: a window's file is in the session's folder.

    The engine makes :class:`Holders` and :class:`Trace` events of the file. The message itself is not an event and is
    not published. The file is ``{pid}.{window}.window``; its first ``bytes`` bytes are written. ``probe/window.h``
    describes its layout. ``pools`` are TensorFlow's logical devices, by the number that the file has for them. ``last``
    is false while the window goes on and the file has only its beginning. ``reading`` is why that is complete, and to
    be read now; ``None`` if it is not. ``windowless`` is set if no window was
    opened: it is the reason, and there is no file.
    """

    pid: Number
    window: Number
    opened: Opened
    closed: Closed | None
    last: bool
    reading: Opened | None = None
    bytes: Size
    pools: Annotated[list[Name], Few]
    function: Text = ""
    cost_us: Size = 0
    windowless: Windowless | None = None
