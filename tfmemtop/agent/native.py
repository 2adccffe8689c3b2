"""Calls the native libraries through ctypes: the probe, and the one that finds where the buffers of tensors lie.

They are loaded at the engine's request, and checked before they are trusted.
"""

import binascii
import ctypes
import sys
from os import RTLD_LAZY, RTLD_NOLOAD
from typing import Any, Callable, Optional

from .devices import Reading
from .loading import load
from .trust import NotTrusted, PoolReader, PublicReader, SizeChange, Taken, agree

VERSION = 4
HERTZ = 1000
CELLS = 2048
"""The most cells of one map."""

_DONE, _FAILED = 1, -2
_MODULE = "tensorflow.python._pywrap_tfe"
_FUNCTIONS = {
    "handle_of": "_Z18EagerTensor_HandlePK7_object",
    "type": "_ZNK10tensorflow12TensorHandle4TypeEv",
    "is_ready": "_ZNK10tensorflow12TensorHandle7IsReadyEv",
    "tensor": "_ZNK10tensorflow12TensorHandle6TensorEPPKNS_6TensorE",
}
_OF_POOL = "pool", "in_use", "chunks", "chunks_in_use", "largest_free", "regions_found"


class _Stats(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in ("in_use", "peak", "pool", "peak_pool", "limit", "allocations")),
        *((name, ctypes.c_int64) for name in ("largest_allocation", "physical", "has_map")),
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


class _Region(ctypes.Structure):
    _fields_ = [
        ("address", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in ("size", "in_use", "chunks", "chunks_in_use", "cells")),
    ]


class _Bin(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("size", "chunks", "chunks_in_use", "bytes", "bytes_in_use")]


class _Biggest(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint64), ("size", ctypes.c_int64), ("requested", ctypes.c_int64)]


class _Map(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("only_region", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in ("cells_wanted", "pool", "in_use", "chunks", "chunks_in_use")),
        *((name, ctypes.c_int64) for name in ("largest_free", "regions_found", "cost_ns")),
        *((name, ctypes.c_int64) for name in ("cells", "regions", "bins", "biggests")),
        ("cell", ctypes.c_uint8 * CELLS),
        ("region", _Region * 512),
        ("bin", _Bin * 32),
        ("sizes", ctypes.c_int64 * 64),
        ("biggest", _Biggest * 20),
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
            self._library = load(path, checksum)
            version = self._library.tfmemtop_version()
        except (OSError, AttributeError) as error:
            raise NotTrusted("system", str(error)) from None
        if version != VERSION:
            raise NotTrusted("version", "", (version, VERSION))
        # One structure serves all readings, since one thread makes them.
        self._taken = _Taken(size=ctypes.sizeof(_Taken), now=_Stats(size=ctypes.sizeof(_Stats)))
        self._map: Optional[_Map] = None

    @property
    def library(self) -> Any:
        """The library as ctypes has loaded it."""
        return self._library

    def gpus(self) -> int:
        """Return how many GPU allocators TensorFlow has made."""
        return max(0, int(self._library.tfmemtop_gpus()))

    def take(self, kind: int, index: int) -> Optional[Taken]:
        taken = self._taken
        done = self._library.tfmemtop_take(kind, index, ctypes.byref(taken))
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
            done = self._library.tfmemtop_stats(kind, index, ctypes.byref(stats))
            self._regained()
            return _reading(stats) if done == _DONE else None

        return agree(read, public)

    def start_sampler(self) -> None:
        """Start the library's thread, which watches the allocators that were read, between two readings.

        Raises:
            NotTrusted: the thread cannot be started.
        """
        if self._library.tfmemtop_sampler_start(HERTZ) != _DONE:
            raise NotTrusted("no_thread")

    def keep_log_lines(self, path: str) -> None:
        """Have TensorFlow's lines about allocators that find no room appended to the file *path* from now on.

        The line is there at once, even if Python's lock is held. Not every TensorFlow logs in a way that allows this.
        """
        self._library.tfmemtop_keep_log_lines(path.encode("utf-8", "surrogateescape"))

    def stop_sampler(self) -> None:
        """Stop the library's thread; wait a twentieth of a second at most."""
        self._library.tfmemtop_sampler_stop()

    def map(
        self, kind: int, index: int, region: Optional[int], read: "Callable[[], object]" = bool
    ) -> "Optional[dict[str, Any]]":
        """Return the fields of a MemoryMap event; ``None`` if this allocator has no map.

        With *region*, a region's address, all cells are spent on that one. *read* is called once the map has been read,
        before many Python objects are made of it.

        Raises:
            MemoryError: there was no memory left for the record of the chunks.
        """
        if self._map is None:
            self._map = _Map(size=ctypes.sizeof(_Map))
        found = self._map
        found.only_region, found.cells_wanted = region or 0, CELLS
        done = self._library.tfmemtop_map(kind, index, ctypes.byref(found))
        if done == _FAILED:
            raise MemoryError
        if done != _DONE:
            return None
        read()
        free = found.pool - found.in_use
        sizes = list(found.sizes)
        while sizes and not sizes[-1]:
            sizes.pop()
        return {
            "region": region,
            **{name: getattr(found, name) for name in _OF_POOL},
            "fragmentation": round((free - found.largest_free) / free, 6) if free else 0.0,
            "cells": binascii.b2a_base64(bytes(found.cell[: found.cells]), newline=False).decode(),
            "regions": [_row(one) for one in found.region[: found.regions]],
            "bins": [[number, *_row(one)] for number, one in enumerate(found.bin[: found.bins]) if one.chunks],
            "sizes": sizes,
            "biggest": [_row(one) for one in found.biggest[: found.biggests]],
        }


def _row(structure: ctypes.Structure) -> "list[int]":
    """Return all fields in their order."""
    return [getattr(structure, name) for name, *_ in structure._fields_]


def _reading(stats: _Stats, high: Optional[int] = None) -> Reading:
    pool, limit, peak_pool = map(_known, (stats.pool, stats.limit, stats.peak_pool))
    return Reading(stats.in_use, stats.peak, pool, limit or None, peak_pool, stats.allocations, high)


def _known(value: int) -> Optional[int]:
    return None if value < 0 else value


class _HandleFunctions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint64), *((name, ctypes.c_void_p) for name in _FUNCTIONS)]


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
    if type(file) is not str:
        return None
    try:
        # Only what TensorFlow has loaded already; this call loads none.
        tensorflow = ctypes.CDLL(file, mode=RTLD_NOLOAD | RTLD_LAZY)
        found = [ctypes.c_void_p.from_buffer(getattr(tensorflow, symbol)) for symbol in _FUNCTIONS.values()]
        functions = _HandleFunctions(ctypes.sizeof(_HandleFunctions), *found)
        if library.tfmemtop_handle_functions(ctypes.byref(functions)) != _DONE:
            return None
        address = ctypes.PyDLL(None, handle=library._handle).tfmemtop_address
        address.restype, address.argtypes = ctypes.c_uint64, (ctypes.py_object,)
        return address
    except (OSError, AttributeError):
        return None
