"""Calls the native libraries through ctypes: the probe, and the one that finds where the buffers of tensors lie.

They are loaded at the engine's request, and checked before they are trusted.
"""

import ctypes
import sys
from typing import Any, Callable, Optional

from .layouts import Reading
from .loading import load
from .trust import NotTrusted, PoolReader, PublicReader, SizeChange, Taken, agree

VERSION = 5
HERTZ = 1000

_DONE = 1
_MODULE = "tensorflow.python._pywrap_tfe"


class _Stats(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in ("in_use", "peak", "pool", "peak_pool", "limit", "allocations")),
        *((name, ctypes.c_int64) for name in ("largest_allocation", "physical")),
        ("name", ctypes.c_char * 64),
    ]


class _Growth(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("at_ns", "before", "after")]


class _Taken(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("now", _Stats),
        *((name, ctypes.c_int64) for name in ("high", "samples", "growths", "lost")),
        ("growth", _Growth * 64),
    ]


class Native(PoolReader):
    """The loaded library. It must not be called in a forked child, where its functions do nothing.

    *regained* is called after each call of the library, during which the script's threads may have run.

    Raises:
        NotTrusted: the file at *path* does not have this *checksum*, cannot be loaded, or is of another version.
    """

    def __init__(self, path: str, checksum: int, regained: "Callable[[], object]" = bool) -> None:
        super().__init__()
        self._regained = regained
        try:
            self.library = load(path, checksum)
            """The library as ctypes has loaded it."""
            version = self.library.tfmemtop_version()
        except (OSError, AttributeError) as error:
            raise NotTrusted("system", str(error)) from None
        if version != VERSION:
            raise NotTrusted("version", "", (version, VERSION))
        # One structure serves all readings, since one thread makes them.
        self._taken = _Taken(size=ctypes.sizeof(_Taken), now=_Stats(size=ctypes.sizeof(_Stats)))

    def gpus(self) -> int:
        """Return how many GPU allocators TensorFlow has made."""
        return max(0, int(self.library.tfmemtop_gpus()))

    def take(self, kind: int, index: int) -> Optional[Taken]:
        taken = self._taken
        done = self.library.tfmemtop_take(kind, index, ctypes.byref(taken))
        self._regained()
        if done != _DONE:
            return None
        now = taken.now
        reading = _reading(now, taken.high)
        growths = [SizeChange(one.at_ns / 1e9, one.before, one.after) for one in taken.growth[: taken.growths]]
        return Taken(reading, now.name.decode("utf-8", "replace"), _known(now.physical), growths)

    def check(self, kind: int, index: int, public: Optional[PublicReader]) -> bool:
        stats = _Stats(size=ctypes.sizeof(_Stats))

        def read() -> Optional[Reading]:
            done = self.library.tfmemtop_stats(kind, index, ctypes.byref(stats))
            self._regained()
            return _reading(stats) if done == _DONE else None

        return agree(read, public)

    def start_sampler(self) -> None:
        """Start the library's thread, which watches the allocators that were read, between two readings.

        Raises:
            NotTrusted: the thread cannot be started.
        """
        if self.library.tfmemtop_sampler_start(HERTZ) != _DONE:
            raise NotTrusted("no_thread")

    def keep_log_lines(self, path: str) -> None:
        """Have TensorFlow's lines about allocators that find no room appended to the file *path* from now on.

        The line is there at once, even if Python's lock is held. Not every TensorFlow logs in a way that allows this.
        """
        self.library.tfmemtop_keep_log_lines(path.encode("utf-8", "surrogateescape"))

    def stop_sampler(self) -> None:
        """Stop the library's thread; wait a twentieth of a second at most."""
        self.library.tfmemtop_sampler_stop()


def _reading(stats: _Stats, high: Optional[int] = None) -> Reading:
    pool, limit, peak_pool = map(_known, (stats.pool, stats.limit, stats.peak_pool))
    return Reading(stats.in_use, stats.peak, pool, limit or None, peak_pool, stats.allocations, high)


def _known(value: int) -> Optional[int]:
    return None if value < 0 else value


def address_reader(path: str, checksum: int) -> Optional[Any]:
    """Return the C function that returns the address of an eager tensor's buffer, from the library at *path*.

    For a variable's handle it is that of the variable's buffer, and 0 where it cannot be read at once. The function
    neither keeps the tensor nor makes containers that stay. Return ``None`` if this TensorFlow does not export what is
    needed.

    Raises:
        NotTrusted, OSError: as :func:`~.loading.load` raises them.
    """
    library = load(path, checksum)
    module: Any = sys.modules.get(_MODULE)
    file = None if module is None else vars(module).get("__file__")
    if type(file) is not str or library.tfmemtop_find_functions(file.encode("utf-8", "surrogateescape")) != _DONE:
        return None
    address = ctypes.PyDLL(None, handle=library._handle).tfmemtop_address
    address.restype, address.argtypes = ctypes.c_uint64, (ctypes.py_object,)
    return address
