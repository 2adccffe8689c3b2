"""How the pools of a process are read, and what prevents it.

The hook and the build send these values.
"""

from enum import Enum
from typing import Annotated

import msgspec

from tfmemtop.bounds import Few, Name, Number, Size, Text
from tfmemtop.events.base import DescribedEnum, Event, Latest, Origin

LAYOUTS = "2.16 to 2.22"
"""The versions of TensorFlow whose layout in memory is known."""


class Fault(DescribedEnum):
    """Why figures, or a library, are not trusted; in brackets, which other fields of :class:`Distrust` belong to it."""

    FILE_CHANGED = "file_changed", "its file is not the one that was checked"
    NO_LIBRARY = "no_library", "its file is no library"
    WRITABLE = "writable", "others may write to its file"
    NO_MEMFD = "no_memfd", "this system's C library has no memfd_create"
    NO_MEMORY_FILE = "no_memory_file", "the kernel gives no file in memory to load it from"
    VERSION = "version", "it has version {0}, and {1} is needed"  # (figures: its own, and the one that is needed)
    NO_THREAD = "no_thread", "its thread cannot be started"
    SYSTEM = "system", "{detail}"  # (detail: the error)

    TENSORFLOW_UNKNOWN = "tensorflow_unknown", "TensorFlow's version is not known"
    LAYOUT_UNKNOWN = (  # (detail: its version)
        "layout_unknown",
        f"the memory layout of TensorFlow {{detail}} is not known; that of {LAYOUTS} is",
    )
    NOT_64_BIT = "not_64_bit", "TensorFlow's layout in memory is known on 64-bit little-endian systems only"
    MEMORY_CLOSED = "memory_closed", "the kernel does not let the process read its own memory"
    REGIONS = "regions", "its regions do not add up to the pool"
    NAME = "name", "it has no name"

    # (figures: in use and peak as read; TensorFlow's)
    DISAGREES = "disagrees", "in use and peak were read as {0} and {1}, TensorFlow says {2} and {3}"
    # (figures: in use, peak, pool, peak pool, limit)
    IMPLAUSIBLE = "implausible", "its figures are impossible: in use {0}, peak {1}, pool {2}, peak pool {3}, limit {4}"

    FOUND_GPUS = "found_gpus", "it finds GPU allocators where there are none"
    FOUND_NONE = "found_none", "it does not find TensorFlow's allocator"
    MISCOUNTED = "miscounted", "{0} bytes were in use, and it read {1}"  # (figures: the right number, as read)
    # (figures: allocations made; detail: what the window contains)
    WINDOW = "window", "{0} allocations were made, and a window tells of {detail}"
    ANSWERS = "answers", "its answers are wrong: {detail}"  # (detail: the answers)
    REPLAY = "replay", "it gave no answer: {detail}"  # (detail: why)


class Distrust(msgspec.Struct, frozen=True):
    """What is wrong with the figures of ``device``, or, if that is empty, with the library as a whole."""

    fault: Fault
    detail: Text = ""
    figures: Annotated[list[Size | None], Few] = msgspec.field(default_factory=list)
    device: Name = ""


class Unbuildable(DescribedEnum):
    """Why there is no library, or no program for replays.

    In brackets, which fields of :class:`Unbuilt` belong to the reason.
    """

    # (file: its name)
    NO_FRAMEWORK = "no_framework", "this TensorFlow has no {file}, through which its allocators would be read"
    NO_HEADERS = "no_headers", "this TensorFlow came without its C++ headers"
    NO_COMPILER = "no_compiler", "there is no C++ compiler"  # (detail: the command that installs one)
    COMPILER_SLOW = "compiler_slow", "the compiler was not done after {count} s"  # (count: seconds)
    COMPILER_FAILED = "compiler_failed", "the compiler cannot be started: {detail}"  # (detail: the error)
    # (detail: the compiler's message)
    DOES_NOT_COMPILE = "does_not_compile", "{title} does not compile against this TensorFlow: {detail}"
    NO_ROOM = "no_room", "there is no room to build {title}"  # (file: the folder)
    NOT_KEPT = "not_kept", "{title} cannot be kept in {file}: {detail}"  # (file: the folder; detail: the error)
    NOT_OURS = "not_ours", "{title} cannot be kept in {file}: the folder belongs to another user"  # (file: the folder)
    # (detail: the signal, if known; file: the mark of that)
    REFUSED = "refused", "{title} is not used: a process ended as it loaded it ({how})"
    TRIAL_SLOW = "trial_slow", "a trial of {title} was not done after {count} s"  # (count: seconds)
    TRIAL_KILLED = "trial_killed", "{title} was built, and its trial was ended by {signal}"  # (count: the signal)
    # (count: its exit status; detail: its last line)
    TRIAL_ENDED = "trial_ended", "{title} was built, and failed in a trial with exit code {count}{detail}"
    DISTRUSTED = "distrusted", "{title} was built, and failed in a trial: {trial}"  # (trial)
    SYSTEM = "system", "{title} could not be built: {detail}"  # (detail: the error)


class Unbuilt(msgspec.Struct, frozen=True):
    """The reason why a build failed, with its details."""

    why: Unbuildable
    detail: Text = ""
    file: Text = ""
    count: Size | None = None
    trial: Distrust | None = None


class ProbeNote(DescribedEnum):
    """What the engine reports of a probe; in brackets, which fields of :class:`Probe` belong to it."""

    LEFT_OUT = "left_out", "left out by --no-probe: only what is in use is known, not the pools"
    BEING_BUILT = "being_built", "the probe is being built while the script runs; this happens once"
    NOT_AGAIN = "not_again", "the probe is not used again: a process ended as it loaded it"
    TO_BE_LOADED = "to_be_loaded", "the probe is built; it is loaded once TensorFlow has initialised its devices"
    # (signal, if known; file: the mark of that)
    ENDED_PROCESS = "ended_process", "the process ended as it loaded the probe ({how}), which is not used again"
    ENDED_PROCESS_UNMARKED = (  # (signal; detail: why there is no such file)
        "ended_process_unmarked",
        "the process ended as it loaded the probe ({how}), which is not used again by this session; the next "
        "session tries it again, because this could not be saved: {detail}",
    )
    NOT_IN_TIME = "not_in_time", "the probe was not built within {count} s"  # (count: seconds)
    # (detail: the last line that the build printed, if any)
    NOT_BUILT = "not_built", "the probe could not be built: {detail}"


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
