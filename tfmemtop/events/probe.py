"""By which way the pools of a process are looked into, and what stands in the way, as facts.

The hook and the build send these values. ``words/probe.py`` says them.
"""

from enum import Enum
from typing import Annotated, Literal

import msgspec

from tfmemtop.bounds import Few, Name, Number, Size, Text
from tfmemtop.events.base import Event, Origin
from tfmemtop.events.keep import Latest


class Fault(Enum):
    """Why figures, or a library, are not trusted; in brackets, what else of :class:`Distrust` belongs to it."""

    FILE_CHANGED = "file_changed"  # the library's file is not the one that was checked
    NO_LIBRARY = "no_library"  # the file is none
    WRITABLE = "writable"  # by others
    NO_MEMFD = "no_memfd"  # the C library has none, through which it would be loaded
    NO_MEMORY_FILE = "no_memory_file"  # the kernel gives none
    VERSION = "version"  # of the library (figures: its own, and the one that is needed)
    NO_THREAD = "no_thread"  # for the library to watch from
    SYSTEM = "system"  # (detail: the error)

    TENSORFLOW_UNKNOWN = "tensorflow_unknown"  # its version
    LAYOUT_UNKNOWN = "layout_unknown"  # of this TensorFlow (detail: its version)
    NOT_64_BIT = "not_64_bit"  # little-endian, which the layout is known for
    MEMORY_CLOSED = "memory_closed"  # the kernel does not let the process read its own
    REGIONS = "regions"  # they do not add up to the pool
    NAME = "name"  # the allocator has none

    DISAGREES = "disagrees"  # with TensorFlow (figures: in use and peak as read, and as TensorFlow says)
    IMPLAUSIBLE = "implausible"  # (figures: in use, peak, pool, peak pool, limit)

    FOUND_GPUS = "found_gpus"  # in a trial that has none
    FOUND_NONE = "found_none"  # no allocator of TensorFlow's, in a trial
    MISCOUNTED = "miscounted"  # in a trial (figures: bytes in use, as read, as in the map)
    WINDOW = "window"  # in a trial (figures: allocations made; detail: what the window tells)
    ANSWERS = "answers"  # of the replay, in a trial (detail: what it answered)
    REPLAY = "replay"  # gave no answer in a trial (detail: why)


class Distrust(msgspec.Struct, frozen=True):
    """What is wrong with the figures of *device*, or with the library as a whole."""

    fault: Fault
    detail: Text = ""
    figures: Annotated[list[Size | None], Few] = msgspec.field(default_factory=list)
    device: Name = ""


class Unbuildable(Enum):
    """Why there is no library, or no program for replays; in brackets, what of :class:`Unbuilt` belongs to it."""

    NO_FRAMEWORK = "no_framework"  # TensorFlow's library, which it is linked with (file: its name)
    NO_HEADERS = "no_headers"  # of TensorFlow
    NO_COMPILER = "no_compiler"  # (detail: the command that installs one)
    COMPILER_SLOW = "compiler_slow"  # (count: seconds)
    COMPILER_FAILED = "compiler_failed"  # to start (detail: the error)
    DOES_NOT_COMPILE = "does_not_compile"  # (detail: what the compiler says)
    NO_ROOM = "no_room"  # (file: the folder)
    NOT_KEPT = "not_kept"  # (file: the folder; detail: the error)
    NOT_OURS = "not_ours"  # the folder belongs to another user (file)
    REFUSED = "refused"  # it has ended a process (detail: the signal, if known; file: what says so)
    TRIAL_SLOW = "trial_slow"  # (count: seconds)
    CUT_SHORT = "cut_short"  # the linker has not written all of it
    TRIAL_KILLED = "trial_killed"  # (count: the signal)
    TRIAL_ENDED = "trial_ended"  # (count: its exit status; detail: its last line)
    DISTRUSTED = "distrusted"  # in a trial (trial)
    SYSTEM = "system"  # (detail: the error)


class Unbuilt(msgspec.Struct, frozen=True):
    """A build that failed."""

    why: Unbuildable
    detail: Text = ""
    file: Text = ""
    count: Size | None = None
    trial: Distrust | None = None


class ProbeNote(Enum):
    """What the engine tells of a probe; in brackets, which fields of :class:`Probe` belong to it."""

    LEFT_OUT = "left_out"  # the user wishes none
    BEING_BUILT = "being_built"  # (detail: TensorFlow's version)
    NOT_AGAIN = "not_again"  # it has ended another process
    TO_BE_LOADED = "to_be_loaded"  # once TensorFlow has made its devices
    ENDED_PROCESS = "ended_process"  # that loaded it (signal, if known; file: what says that it is not used again)
    ENDED_PROCESS_UNMARKED = "ended_process_unmarked"  # likewise (signal; detail: why there is no such file)
    NOT_IN_TIME = "not_in_time"  # not built (count: seconds)
    NOT_BUILT = "not_built"  # (detail: the last thing that was said, if anything was)


class Probe(Event, tag="probe", frozen=True):
    """By which way the pools of one process are looked into.

    How far the probe is, the native library for that: ``building``, ``built`` (it waits for TensorFlow's devices),
    ``loading`` (a process that ends now was ended by it), ``loaded`` (checked, and in use), ``unavailable`` (something
    is missing that could be installed), ``failed``. Apart from it, what there is without the probe: ``direct`` (pools
    are read in place) or ``public`` (only in use and peak are known, which TensorFlow's public API tells).
    What else is known is a ``note`` of the engine's, why it could not be built, or what of it the hook does not trust.
    ``text`` and ``remedy`` are sentences of recordings made before these were facts.
    """

    origin = Origin.HOOK
    keep = Latest("pid", "of_library")

    pid: Number
    state: Literal["building", "built", "loading", "loaded", "unavailable", "failed", "direct", "public"]
    text: Text = ""
    remedy: Text = ""
    note: ProbeNote | None = None
    detail: Text = ""
    file: Text = ""
    signal: Number | None = None
    count: Size | None = None
    unbuilt: Unbuilt | None = None
    distrust: Distrust | None = None

    @property
    def of_library(self) -> bool:
        """Whether it tells of the native library."""
        return self.state not in ("direct", "public")
