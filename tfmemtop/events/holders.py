"""Who allocated what a pool has in use: windows of TensorFlow's own allocation events, and what lies in XLA's buffers.

A **window** is a short time in which a process records its allocations. ``events/courses.py`` packs and unpacks the
fields that are bytes.
"""

from enum import Enum
from typing import Annotated

import msgspec

from tfmemtop.bounds import Few, Many, Name, Number, Seconds, Size, Some, Text
from tfmemtop.events.base import Event, Origin
from tfmemtop.events.damage import Damage
from tfmemtop.events.keep import Latest, Newest


class Opened(Enum):
    """Why a window was opened."""

    START = "start"  # from the making of the devices on
    INTERVAL = "interval"
    PEAK = "peak"  # the peak in use has risen
    FINDING = "finding"
    ASKED = "asked"
    WAITING = "waiting"  # an allocation had failed and TensorFlow waited for room


class Closed(Enum):
    """Why a window ended."""

    STEP = "step"  # a step was whole
    TIME = "time"
    EVENTS = "events"
    PROFILER = "profiler"  # the script began to profile
    EXIT = "exit"
    DISK = "disk"  # its file could not be written
    MEMORY = "memory"  # there was none left for it


class Windowless(Enum):
    """Why no window was opened."""

    NO_PROBE = "no_probe"  # which alone records allocations
    PROFILER_SERVER = "profiler_server"  # the script has started one, by which it may be profiled at any time
    SERVER = "server"  # for other machines, likewise
    PROFILER = "profiler"  # of the script's is on
    NO_FOLDER = "no_folder"  # of the session is known in the process
    NO_EVENTS = "no_events"  # of this TensorFlow can be recorded
    NO_POOL = "no_pool"  # of TensorFlow's BFC allocator


class Holding(msgspec.Struct, frozen=True, array_like=True):
    """Allocations that are alike.

    ``operation`` is the place in ``names`` of TensorFlow's name for the operation, ``None`` if it gave none or if the
    allocation is older than what was recorded. ``shape`` is ``None`` if it is not known. ``region`` is TensorFlow's
    word for what the memory is for: ``output``, ``temp``, ``persist``, ``dynamic``, or empty. ``requested`` bytes of a
    chunk of ``size`` were asked for. ``window`` is the one in which it was allocated, 0 if in none.
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

    ``began`` and ``ended`` are seconds of the session. ``before`` is in use as the window began, ``peak`` its highest
    in use, both as TensorFlow's allocator says, and ``peak_at`` the number of the event, from 0 on, that reached it;
    -1 if none was higher than ``before``.
    A whole step of ``function`` lies in it if ``steps`` is at least 1. ``unknown`` bytes of the peak are of no span,
    because ``lost`` events are missing or a chunk was not found.

    ``names`` of operations and ``holdings`` are lists. ``spans`` has for each allocation its holding, its address, and
    the events at which it began and ended. ``times`` has for each event the time since the one before, in µs. All four
    are packed by ``events/courses.py``: a step of ResNet-50 has 2 500 allocations with as many names, 250 kB of JSON.
    """

    origin = Origin.HOOK
    keep = Newest(4, "pid", "device", first=True)
    droppable = True

    pid: Number
    device: Name
    window: Number  # counted from 1 in each process
    opened: Opened
    closed: Closed
    began: Seconds
    ended: Seconds
    function: Text = ""
    steps: Seconds | None = None
    before: Size = 0
    peak: Size = 0
    peak_at: Number = -1
    unknown: Size = 0
    lost: Size = 0
    names: Annotated[bytes, Many] = b""
    holdings: Annotated[bytes, Many] = b""
    spans: Annotated[bytes, Many] = b""
    times: Annotated[bytes, Many] = b""
    cost_us: Size | None = None  # of the window, to the script
    pace_s: Seconds | None = None  # time to the next one of itself
    missing: Text | None = None  # in older recordings a sentence instead of the next three
    windowless: Windowless | None = None
    damage: Damage | None = None  # what is wrong with the window's file
    detail: Text = ""

    @property
    def is_missing(self) -> bool:
        """Whether there are none."""
        return self.windowless is not None or self.damage is not None or self.missing is not None


class OperationLine(msgspec.Struct, frozen=True, array_like=True):
    """Where the script makes an operation of a graph: the script's own ``file`` and ``line``, and its text."""

    operation: Text
    file: Text
    line: Number
    code: Text


class OperationLines(Event, tag="operation_lines", frozen=True):
    """The lines of the script that made operations of its graphs."""

    origin = Origin.HOOK
    keep = Newest(16, "pid")

    pid: Number
    lines: Annotated[list[OperationLine], Some]


class Trace(Event, tag="trace", frozen=True):
    """A part of all allocations of a process in one pool, in their order, from the making of the devices on.

    ``part`` counts from 0; ``last`` is true of the last one. ``whole`` is false if the trace ended before the process
    had made three steps. ``packed`` holds ``events`` of them; ``steps`` are the numbers of those events, from 0 on in
    the whole trace, at which a step began. ``names`` are of operations that this part names first. What lay in the pool
    before comes first, in the order of its addresses, as allocations of no operation; ``before`` says in the first part
    how many these are. ``scratch`` holds the numbers of allocations of this part that TensorFlow can do without, packed
    as well, such as scratch memory on a GPU.
    """

    origin = Origin.HOOK
    keep = Newest(64, "pid", "device")
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
    names: Annotated[bytes, Many] = b""
    packed: Annotated[bytes, Many] = b""
    scratch: Annotated[bytes, Many] = b""


class XlaValue(msgspec.Struct, frozen=True, array_like=True):
    """A value in an XLA buffer: ``size`` bytes at ``offset``, needed from moment ``first`` of the schedule to ``last``.

    ``instruction`` is XLA's name for it, ``operation`` TensorFlow's for what it computes, or empty. For an instruction
    that XLA itself has made, such as a copy, that is the operation that it was made for. ``file`` and ``line`` are
    where the script makes the operation, as far as XLA knows.
    """

    instruction: Text
    operation: Text
    shape: Text  # with the type, as XLA writes it
    offset: Size
    size: Size
    first: Size
    last: Size
    file: Text = ""
    line: Number = 0


class XlaMissing(Enum):
    """Why there is no report of a cluster, or of any."""

    UNREAD = "unread"  # its text is of a form that is not known; detail: what was missing in it
    TOO_LARGE = "too_large"
    USERS_FOLDER = "users_folder"  # the user's own flags have XLA write elsewhere; detail: those flags
    USERS_FILE = "users_file"  # the user's flags are in a file, which is not changed; detail: its name
    SCRIPTS_FLAGS = "scripts_flags"  # the script has set XLA_FLAGS anew
    NO_FOLDER = "no_folder"  # detail: the error
    TOO_MANY = "too_many"  # modules, of which the first were read; detail: how many
    TOO_MUCH = "too_much"  # bytes were written before they could be read; detail: how many may be


class XlaCluster(Event, tag="xla_cluster", frozen=True):
    """What lies in the temporary buffer of one compiled cluster, as XLA itself reports.

    ``module`` is XLA's number for it in its process, -1 where the process as a whole has no report. ``temporary`` is
    the buffer's size in bytes, ``schedule`` the number of moments, ``peak_at`` the one at which most of the buffer is
    needed, ``peak`` what then is. ``values`` are the largest at the peak and beside it, in the order of their offsets;
    ``others`` bytes at the peak are of those left out. ``unshared`` bytes would be needed if no two values ever had
    the same place. ``course`` has for equal parts of the schedule the most bytes that are needed in each.

    ``parameters``, ``outputs`` and ``constants`` are the bytes of the cluster's other allocations.
    """

    origin = Origin.HOOK
    keep = Latest("pid", "module", most=64)

    pid: Number
    name: Text
    module: Number = 0
    temporary: Size = 0
    schedule: Size = 0
    peak: Size = 0
    peak_at: Size = 0
    others: Size = 0
    unshared: Size = 0
    parameters: Size = 0
    outputs: Size = 0
    constants: Size = 0
    course: Annotated[list[Size], Some] = msgspec.field(default_factory=list)
    values: Annotated[list[XlaValue], Some] = msgspec.field(default_factory=list)
    missing: XlaMissing | None = None
    detail: Text = ""


class Window(msgspec.Struct, tag_field="type", tag="window", frozen=True, kw_only=True):
    """A window lies in the session's folder, for the engine to make :class:`Holders` and :class:`Trace` of.

    Hooks send it, but it is not an event: it is not published. The file is ``{pid}.{window}.window``, its first
    ``bytes`` are written. ``probe/window.h`` describes its layout. ``pools`` are TensorFlow's logical devices by the
    number that the file has for them. ``last`` is false while the window goes on and only its beginning is there.
    With ``windowless``, which says why, no window was opened, and there is no file.
    """

    pid: Number
    window: Number
    opened: Opened
    closed: Closed | None
    last: bool
    bytes: Size
    pools: Annotated[list[Name], Few]
    function: Text = ""
    cost_us: Size = 0
    pace_s: Seconds | None = None
    windowless: Windowless | None = None
