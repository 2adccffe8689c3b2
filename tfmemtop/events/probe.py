"""How the pools of a process are read, and what prevents it.

The hook and the build send these values. ``findings/probe_text.py`` has the texts for them.
"""

from enum import Enum
from typing import Annotated

import msgspec

from tfmemtop.bounds import Few, Name, Number, Size, Text
from tfmemtop.events.base import Event, Origin
from tfmemtop.events.keep import Latest


class Fault(Enum):
    """Why figures, or a library, are not trusted; in brackets, which other fields of :class:`Distrust` belong to it."""

    FILE_CHANGED = "file_changed"  # the library's file is not the one that was checked
    NO_LIBRARY = "no_library"  # the file is not a library
    WRITABLE = "writable"  # other users may write to the file
    NO_MEMFD = "no_memfd"  # the C library has no memfd_create, which is needed to load the library
    NO_MEMORY_FILE = "no_memory_file"  # the kernel gives no file in memory, from which the library would be loaded
    VERSION = "version"  # the library has the wrong version (figures: its own, and the one that is needed)
    NO_THREAD = "no_thread"  # the library cannot start the thread that reads the pools
    SYSTEM = "system"  # (detail: the error)

    TENSORFLOW_UNKNOWN = "tensorflow_unknown"  # TensorFlow's version is not known
    LAYOUT_UNKNOWN = "layout_unknown"  # the memory layout of this TensorFlow is not known (detail: its version)
    NOT_64_BIT = "not_64_bit"  # the layout is known only for 64-bit little-endian systems
    MEMORY_CLOSED = "memory_closed"  # the kernel does not let the process read its own memory
    REGIONS = "regions"  # the regions do not add up to the pool
    NAME = "name"  # the allocator has no name

    DISAGREES = "disagrees"  # TensorFlow reports other figures (figures: in use and peak as read; TensorFlow's)
    IMPLAUSIBLE = "implausible"  # (figures: in use, peak, pool, peak pool, limit)

    FOUND_GPUS = "found_gpus"  # in a trial: it found GPU allocators where there are none
    FOUND_NONE = "found_none"  # in a trial: it did not find TensorFlow's allocator
    MISCOUNTED = "miscounted"  # in a trial: wrong bytes in use (figures: the right number, as read, as in the map)
    WINDOW = "window"  # in a trial: a wrong window (figures: allocations made; detail: what the window contains)
    ANSWERS = "answers"  # in a trial: wrong answers of the replay (detail: the answers)
    REPLAY = "replay"  # in a trial: no answer of the replay (detail: why)


class Distrust(msgspec.Struct, frozen=True):
    """What is wrong with the figures of ``device``, or, if that is empty, with the library as a whole."""

    fault: Fault
    detail: Text = ""
    figures: Annotated[list[Size | None], Few] = msgspec.field(default_factory=list)
    device: Name = ""


class Unbuildable(Enum):
    """Why there is no library, or no program for replays.

    In brackets, which fields of :class:`Unbuilt` belong to the reason.
    """

    NO_FRAMEWORK = "no_framework"  # TensorFlow's library is missing, which the build is linked with (file: its name)
    NO_HEADERS = "no_headers"  # TensorFlow's C++ headers are missing
    NO_COMPILER = "no_compiler"  # (detail: the command that installs one)
    COMPILER_SLOW = "compiler_slow"  # (count: seconds)
    COMPILER_FAILED = "compiler_failed"  # the compiler cannot be started (detail: the error)
    DOES_NOT_COMPILE = "does_not_compile"  # (detail: the compiler's message)
    NO_ROOM = "no_room"  # (file: the folder)
    NOT_KEPT = "not_kept"  # the result cannot be stored (file: the folder; detail: the error)
    NOT_OURS = "not_ours"  # the folder belongs to another user (file: the folder)
    REFUSED = "refused"  # a process ended as it loaded it (detail: the signal, if known; file: the mark of that)
    TRIAL_SLOW = "trial_slow"  # (count: seconds)
    CUT_SHORT = "cut_short"  # the linker has not written all of it
    TRIAL_KILLED = "trial_killed"  # (count: the signal)
    TRIAL_ENDED = "trial_ended"  # (count: its exit status; detail: its last line)
    DISTRUSTED = "distrusted"  # its figures were wrong in a trial (trial)
    SYSTEM = "system"  # (detail: the error)


class Unbuilt(msgspec.Struct, frozen=True):
    """The reason why a build failed, with its details."""

    why: Unbuildable
    detail: Text = ""
    file: Text = ""
    count: Size | None = None
    trial: Distrust | None = None


class ProbeNote(Enum):
    """What the engine reports of a probe; in brackets, which fields of :class:`Probe` belong to it."""

    LEFT_OUT = "left_out"  # the user chose to use no probe
    BEING_BUILT = "being_built"  # (detail: TensorFlow's version)
    NOT_AGAIN = "not_again"  # it is not used, because another process ended as it loaded it
    TO_BE_LOADED = "to_be_loaded"  # it is loaded once TensorFlow has made its devices
    ENDED_PROCESS = "ended_process"  # a process ended as it loaded it (signal, if known; file: the mark of that)
    ENDED_PROCESS_UNMARKED = "ended_process_unmarked"  # likewise (signal; detail: why there is no such file)
    NOT_IN_TIME = "not_in_time"  # it was not built in time (count: seconds)
    NOT_BUILT = "not_built"  # (detail: the last line that the build printed, if any)


class ProbeState(Enum):
    """How far the probe is, the native library that reads pools, or how pools are read without it."""

    BUILDING = "building"
    BUILT = "built"  # it waits for TensorFlow's devices
    LOADING = "loading"  # if the process ends now, the probe ended it
    LOADED = "loaded"  # checked, and in use
    UNAVAILABLE = "unavailable"  # something is missing that could be installed
    FAILED = "failed"

    DIRECT = "direct"  # without the probe: pools are read in place
    PUBLIC = "public"  # without the probe: only in use and peak are known, from TensorFlow's public API

    @property
    def coming(self) -> bool:
        """Whether the probe may still be loaded."""
        return self in (ProbeState.BUILDING, ProbeState.BUILT, ProbeState.LOADING)


class Probe(Event, tag="probe", frozen=True):
    """How the pools of one process are read. The states of reading without the probe have events of their own.

    ``note`` is the engine's remark, ``unbuilt`` the reason why the probe could not be built, and ``distrust`` what of
    it the hook does not trust.
    """

    origin = Origin.HOOK
    keep = Latest("pid", "of_library")

    pid: Number
    state: ProbeState
    note: ProbeNote | None = None
    detail: Text = ""
    file: Text = ""
    signal: Number | None = None
    count: Size | None = None
    unbuilt: Unbuilt | None = None
    distrust: Distrust | None = None

    @property
    def of_library(self) -> bool:
        """Whether the event is about the native library."""
        return self.state not in (ProbeState.DIRECT, ProbeState.PUBLIC)
