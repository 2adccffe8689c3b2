"""Loads a new library beside the real TensorFlow, in a process of its own.

All that a script's process would do with the library is done once, on an allocator of this process. Exit status 0 means
that it went well. With status 1, the last line on stdout has the fields of ``Distrust`` in ``events/probe.py``.
``tensorflow`` is not imported, and no GPU is used.
"""

import ctypes
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tfmemtop.agent.loading import load
from tfmemtop.agent.native import Native
from tfmemtop.agent.native_windows import BY_STEP, Limits, NativeWindows
from tfmemtop.agent.trust import CPU, NotTrusted

_CHUNK = 1 << 20
_WINDOW_S = 60.0


def main(arguments: list[str]) -> int:
    """Try a library; *arguments* are the path of ``libtensorflow_framework.so.2``, the library's and its checksum."""
    framework, library, checksum = arguments
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        tensorflow = ctypes.CDLL(framework, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        if Path(library).stem == "addresses":
            load(library, int(checksum))  # there is no tensor that it could find
        else:
            _try_probe(Native(library, int(checksum)), tensorflow, str(Path(library).parent))
    except (NotTrusted, OSError, MemoryError) as error:
        told = error if isinstance(error, NotTrusted) else NotTrusted("system", str(error))
        print(json.dumps(told.told()), flush=True)
        return 1
    # Without the exit handlers of TensorFlow: if one failed, that would not be the library's fault.
    os._exit(0)


def _try_probe(native: Native, tensorflow: ctypes.CDLL, folder: str) -> None:
    if native.gpus() != 0:
        raise NotTrusted("found_gpus")
    allocator = _make_allocator(tensorflow)
    if allocator is not None:
        _read(native, tensorflow, allocator, folder)


def _make_allocator(tensorflow: ctypes.CDLL) -> int | None:
    """Make TensorFlow's allocator for the CPU; return its address, or ``None`` if this TensorFlow cannot make one."""
    try:
        singleton = tensorflow._ZN10tensorflow12ProcessState9singletonEv
        get = tensorflow._ZN10tensorflow12ProcessState15GetCPUAllocatorEi
    except AttributeError:
        return None
    singleton.restype = get.restype = ctypes.c_void_p
    get.argtypes = ctypes.c_void_p, ctypes.c_int
    return int(get(singleton(), 0))


def _read(native: Native, tensorflow: ctypes.CDLL, allocator: int, folder: str) -> None:
    """Read *allocator* as a script's is read, with allocations made if it is BFC; *folder* is for temporary files.

    Raises:
        NotTrusted: the figures that are read cannot be right.
    """
    if not native.check(CPU, 0, None):
        raise NotTrusted("found_none")
    allocated, found = 0, native.take(CPU, 0)
    if found is not None and found.name.startswith("bfc"):
        allocated = _allocate(tensorflow, allocator)
        _record(native, folder, lambda: _allocate(tensorflow, allocator))
    native.start_sampler()
    native.keep_log_lines(f"{folder}/trial.lines")
    taken = native.take(CPU, 0)
    native.stop_sampler()
    in_use = 0 if taken is None else taken.reading.in_use or 0
    if in_use < allocated:
        raise NotTrusted("miscounted", "", (allocated, in_use))


def _record(native: Native, folder: str, allocate: Callable[[], int]) -> None:
    """Open a window while *allocate* allocates.

    Raises:
        NotTrusted: the window does not end, or does not contain the allocation.
    """
    windows = NativeWindows(native.library)
    # The window is ended here, after the allocation: on a machine that trains, this process may wait long at any place.
    limits = Limits(steps=0, seconds=_WINDOW_S, allocations=1000, events=1000, size=1 << 20, pause_s=0.001)
    with tempfile.TemporaryDirectory(dir=folder) as draft:
        begun = windows.start(f"{draft}/trial.window", [(CPU, 0)], "", limits)
        if begun is None:
            return  # this TensorFlow's events cannot be recorded
        allocations = 1 if allocate() else 0
        windows.end(BY_STEP)
        until = time.monotonic() + _WINDOW_S
        while (found := windows.progress()) is not None and found.running and time.monotonic() < until:
            time.sleep(0.005)
    # A full disk is not the library's fault.
    told = None if found is None or found.running else allocations if found.error else found.allocations
    if not begun or told != allocations:
        raise NotTrusted("window", str(found), (allocations,))


def _allocate(tensorflow: ctypes.CDLL, allocator: int) -> int:
    """Allocate from the BFC *allocator*; return the bytes, 0 if that fails or this TensorFlow exports no way for it."""
    try:
        allocate = tensorflow._ZN3tsl12BFCAllocator11AllocateRawEmm
    except AttributeError:
        return 0
    allocate.restype = ctypes.c_void_p
    allocate.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
    return _CHUNK if allocate(allocator, 64, _CHUNK) else 0
