"""Calls the probe's windows of allocations through ctypes; ``probe/window.h`` has the same structures."""

import ctypes
from os import RTLD_LAZY, RTLD_NOLOAD
from time import monotonic
from typing import Any, NamedTuple, Optional

PLACES = 20
"""The most pools of one window."""

BY_STEP, BY_EXIT = 1, 5
"""Reasons for which this process ends a window."""
CLOSED = ("exit", "step", "time", "events", "profiler", "exit", "disk", "memory")
"""Why a window ended, by the number that the probe gives."""

_DONE, _NOTHING = 1, 0

_LIBRARY = "libtensorflow_framework.so.2"
_BEGIN, _IS_PROFILED = "_ZN3tsl8profiler15TraceMeRecorder5StartEi", "_ZN3tsl8profiler12ProfilerLock16HasActiveSessionEv"
_LEVEL, _OFF, _ALLOCATORS = "_ZN3tsl8profiler8internal13g_trace_levelE", -1, 2
_EARLY_S, _EARLY_ALLOCATIONS = 30.0, 50_000  # these take some 40 MB of the script's memory


class _Place(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int64), ("index", ctypes.c_int64)]


class _Wanted(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in ("steps", "most_ns", "most_allocations", "most_events", "most_bytes")),
        *((name, ctypes.c_int64) for name in ("pause_ns", "places")),
        ("place", _Place * PLACES),
        ("function", ctypes.c_char * 256),
        ("path", ctypes.c_char * 4096),
    ]


class Limits(NamedTuple):
    """The limits that end a window: whole *steps*, seconds, events of allocators and of all kinds, bytes of its file.

    With 0 *steps*, the window does not end with a step.

    *pause_s* is the time between two looks at what was recorded.
    """

    steps: int
    seconds: float
    allocations: int
    events: int
    size: int
    pause_s: float


class Progress(ctypes.Structure):
    """How far a window is: whether it is ``running``, why it ``closed``, and what was recorded, in counts and bytes.

    ``completed`` is how often the window's file has been completed.
    """

    _fields_ = [
        ("size", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in ("running", "closed", "error", "bytes", "events", "allocations")),
        *((name, ctypes.c_int64) for name in ("steps", "began_ns", "cost_ns", "completed")),
        ("name", ctypes.c_char * 256),
    ]

    @property
    def cost_s(self) -> float:
        return float(self.cost_ns / 1e9)

    @property
    def function(self) -> str:
        return str(self.name.decode("utf-8", "replace"))


class EarlyRecording:
    """TensorFlow's recording while the probe is still built. The probe's first window takes over what was recorded.

    TensorFlow's functions are called with Python's lock held, so that no thread of Python's forks meanwhile.

    Raises:
        AttributeError: this TensorFlow has no such functions.
    """

    def __init__(self, folder: str) -> None:
        """Begin, unless the script is profiling. *folder* is that of the ``tensorflow`` package that runs here."""
        library = ctypes.PyDLL(f"{folder}/{_LIBRARY}", mode=RTLD_NOLOAD | RTLD_LAZY)
        is_profiled, begin = getattr(library, _IS_PROFILED), getattr(library, _BEGIN)
        self._level = ctypes.c_int.in_dll(library, _LEVEL)
        self._until = monotonic() + _EARLY_S
        self._is_on = not is_profiled() & 1 and begin(_ALLOCATORS) & 1

    def is_over(self, allocations: int) -> bool:
        """Return whether it has lasted too long, as the script has made so many *allocations*."""
        return allocations > _EARLY_ALLOCATIONS or monotonic() > self._until

    def forbid(self) -> None:
        """End it, also in a forked child: no lock is taken."""
        if self._is_on:
            self._is_on = False
            self._level.value = _OFF


class NativeWindows:
    """The probe's windows, one at a time. Any thread may call :meth:`forbid`, :meth:`permit` and :meth:`end`."""

    def __init__(self, library: Any) -> None:
        """*library* is the loaded probe."""
        self._library = library
        self._progress = Progress(size=ctypes.sizeof(Progress))

    def start(self, path: str, places: "list[tuple[int, int]]", function: str, limits: Limits) -> Optional[bool]:
        """Open a window; return ``False`` if none may be opened now, ``None`` if this TensorFlow cannot have any."""
        done = self._library.tfmemtop_window_start(ctypes.byref(self._wanted(path, places, function, limits)))
        return done == _DONE if done in (_DONE, _NOTHING) else None

    def await_peak(
        self, risen: "tuple[int, int]", path: str, places: "list[tuple[int, int]]", function: str, limits: Limits
    ) -> bool:
        """Have a window opened as soon as a peak has risen by so many percent and bytes, unless one is open then.

        Return whether that is awaited now. A window that is opened otherwise ends the waiting.
        """
        wanted = self._wanted(path, places, function, limits)
        return bool(self._library.tfmemtop_window_await(ctypes.byref(wanted), *map(ctypes.c_int64, risen)) == _DONE)

    def _wanted(self, path: str, places: "list[tuple[int, int]]", function: str, limits: Limits) -> _Wanted:
        steps, seconds, *most, pause_s = limits
        wanted = _Wanted(ctypes.sizeof(_Wanted), steps, int(seconds * 1e9), *most, int(pause_s * 1e9))
        wanted.places = min(len(places), PLACES)
        wanted.function = function.encode("utf-8", "replace")[:255]
        wanted.path = path.encode("utf-8", "surrogateescape")[:4095]
        for place, (kind, index) in zip(wanted.place, places):
            place.kind, place.index = kind, index
        return wanted

    def progress(self) -> Optional[Progress]:
        """Return how far the newest window is, until the next call; ``None`` if there was none."""
        return self._progress if self._library.tfmemtop_window_told(ctypes.byref(self._progress)) == _DONE else None

    def complete(self) -> None:
        """Have the file completed soon with all that was recorded until now; the recording goes on."""
        self._library.tfmemtop_window_complete()

    def end(self, why: int) -> None:
        """End the recording at once, for the reason *why*; what was recorded is still written."""
        self._library.tfmemtop_window_end(ctypes.c_int64(why))

    def forbid(self) -> None:
        """End a window that is open, and let none be opened until :meth:`permit`, which undoes one call of this."""
        self._library.tfmemtop_window_forbid(1)

    def permit(self) -> None:
        """Undo one :meth:`forbid`."""
        self._library.tfmemtop_window_forbid(0)
