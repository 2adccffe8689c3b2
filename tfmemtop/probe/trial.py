"""Loads a new library beside the real TensorFlow, in a process that nobody misses.

All that a script's process would do with the library is done once, on an allocator of this process. Exit status 0 says
that it went well; with 1, the last line on stdout says what did not. ``tensorflow`` is not imported, no GPU is touched.
"""

import ctypes
import os
import resource

from tfmemtop.agent.native import Native
from tfmemtop.agent.trust import CPU, NotTrusted

_CHUNK = 1 << 20


def main(arguments: list[str]) -> int:
    """Try a library; *arguments* are the path of ``libtensorflow_framework.so.2``, the library's and its checksum."""
    framework, library, checksum = arguments
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        tensorflow = ctypes.CDLL(framework, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        native = Native(library, int(checksum))
        if native.gpus() != 0:
            raise NotTrusted("it finds GPU allocators where there are none")
        allocator = _make_allocator(tensorflow)
        if allocator is not None:
            _read(native, tensorflow, allocator)
    except (NotTrusted, OSError, MemoryError) as error:
        print(error, flush=True)
        return 1
    # Not by TensorFlow's own way out, which says nothing of the library.
    os._exit(0)


def _make_allocator(tensorflow: ctypes.CDLL) -> int | None:
    """The address of TensorFlow's allocator for the CPU, made here; ``None`` if this TensorFlow exports no way."""
    try:
        singleton = tensorflow._ZN10tensorflow12ProcessState9singletonEv
        get = tensorflow._ZN10tensorflow12ProcessState15GetCPUAllocatorEi
    except AttributeError:
        return None
    singleton.restype = get.restype = ctypes.c_void_p
    get.argtypes = ctypes.c_void_p, ctypes.c_int
    return int(get(singleton(), 0))


def _read(native: Native, tensorflow: ctypes.CDLL, allocator: int) -> None:
    """Read *allocator* as a script's is read, with one allocation made if it is BFC.

    Raises:
        NotTrusted: what is read cannot be.
    """
    if not native.check(CPU, 0, None):
        raise NotTrusted("it does not find TensorFlow's allocator")
    allocated = 0
    if native.map(CPU, 0, None) is not None:
        allocated = _allocate(tensorflow, allocator)
    native.start_sampler()
    taken, found = native.take(CPU, 0), native.map(CPU, 0, None)
    native.stop_sampler()
    in_use = 0 if taken is None else taken.reading.in_use or 0
    mapped = in_use if found is None else found["in_use"]
    if in_use < allocated or mapped != in_use:
        raise NotTrusted(f"{allocated} bytes are in use, it reads {in_use}, and {mapped} in the map")


def _allocate(tensorflow: ctypes.CDLL, allocator: int) -> int:
    """How many bytes could be allocated of the BFC *allocator*."""
    try:
        allocate = tensorflow._ZN3tsl12BFCAllocator11AllocateRawEmm
    except AttributeError:
        return 0
    allocate.restype = ctypes.c_void_p
    allocate.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
    return _CHUNK if allocate(allocator, 64, _CHUNK) else 0
