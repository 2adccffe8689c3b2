"""How JAX, PyTorch, CuPy and RMM are read: each names its figures in its own way.

A script may use other frameworks beside TensorFlow, or in its place. A reader runs only if the script has imported the
framework, and the framework has initialised its devices. It calls what the framework offers for that, and nothing that
would import, initialise or allocate.
"""

import ctypes
import os
import sys
from typing import Any, Callable, NamedTuple, Optional


class FrameworkReading(NamedTuple):
    """What a framework holds on the GPU with CUDA's ``ordinal``, in bytes; ``None`` where it does not tell a figure.

    ``in_use`` is allocated to its arrays, ``held`` is what it has taken from CUDA.
    """

    ordinal: int
    in_use: Optional[int] = None
    held: Optional[int] = None
    peak: Optional[int] = None
    limit: Optional[int] = None


class Reader(NamedTuple):
    """How one framework is read.

    ``framework`` is its name in events, and ``title`` the one in the names of its devices. ``module`` is the module
    with its functions. The other functions take that module. ``begins`` returns, at each import, whether the thread
    that reads it may be started. A thread of the agent's before those of the script or its libraries would make Python
    warn of a fork. ``read`` returns nothing before the framework has initialised GPUs. ``watch`` has a function called
    once it does; it is ``None`` where the framework offers nothing for that.
    """

    framework: str
    title: str
    module: str
    variables: "tuple[str, ...]"  # of the environment, that steer its GPU memory
    begins: Callable[[Any], bool]
    read: "Callable[[Any], list[FrameworkReading]]"
    watch: Optional[Callable[[Any, Callable[[], object]], None]] = None


def has_threads(_: Any = None) -> bool:
    """Return whether this process has more than one thread."""
    return os.stat("/proc/self/task").st_nlink - 2 > 1


def initialised_gpus() -> "list[int]":
    """Return CUDA's ordinals of the GPUs on which this process has its primary context; none without CUDA's driver."""
    count, device, flags, active = ctypes.c_int(), ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
    found: list[int] = []
    try:
        cuda = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        if cuda.cuDeviceGetCount(ctypes.byref(count)):  # CUDA is not initialised
            return found
        for ordinal in range(count.value):
            known = not cuda.cuDeviceGet(ctypes.byref(device), ordinal)
            state = (device, ctypes.byref(flags), ctypes.byref(active))
            if known and not cuda.cuDevicePrimaryCtxGetState(*state) and active.value:
                found.append(ordinal)
    except (OSError, AttributeError):  # the driver is not loaded, or too old to have the call
        return []
    return found


# JAX: the statistics of the devices of the backends that it has initialised. ``jax.local_devices()`` would initialise
# them. The module has them in a table, and its clients and devices are public.

# in ``Device.memory_stats()``
_JAX_FIGURES = {"in_use": "bytes_in_use", "held": "pool_bytes", "peak": "peak_bytes_in_use", "limit": "bytes_limit"}
_JAX_GPUS = ("cuda", "rocm", "gpu")
_JAX_WITHOUT_FIGURES = "UNIMPLEMENTED"  # the allocator `platform` has no statistics


def _jax_begins(xla_bridge: Any) -> bool:
    return any(name in _JAX_GPUS for name in list(xla_bridge._backends))


def _read_jax(xla_bridge: Any) -> "list[FrameworkReading]":
    backends = xla_bridge._backends
    clients = [backends.get(name) for name in _JAX_GPUS]
    return [_read_jax_device(device) for client in clients if client is not None for device in client.local_devices()]


def _read_jax_device(device: Any) -> FrameworkReading:
    try:
        told = device.memory_stats() or {}
    except Exception as error:
        if _JAX_WITHOUT_FIGURES not in str(error):
            raise
        told = {}
    figures = {figure: told.get(name) for figure, name in _JAX_FIGURES.items()}
    return FrameworkReading(device.local_hardware_id, **figures)


# PyTorch: the statistics of its caching allocator, which it keeps for each GPU.

_TORCH_FIGURES = {  # in ``torch.cuda.memory_stats_as_nested_dict()``
    "in_use": ("allocated_bytes", "all", "current"),
    "held": ("reserved_bytes", "all", "current"),
    "peak": ("allocated_bytes", "all", "peak"),
}
_TORCH_WITHOUT_FIGURES = "does not yet support getDeviceStats"  # an allocator of the script's, such as RMM's


def _torch_begins(cuda: Any) -> bool:
    return bool(cuda.is_initialized())


def _read_torch(cuda: Any) -> "list[FrameworkReading]":
    found = []
    for ordinal in range(cuda.device_count() if _torch_begins(cuda) else 0):
        try:
            told = cuda.memory_stats_as_nested_dict(ordinal)
        except RuntimeError as error:
            if _TORCH_WITHOUT_FIGURES not in str(error):
                raise
            return []
        figures = {figure: told[of][pool][kind] for figure, (of, pool, kind) in _TORCH_FIGURES.items()}
        if figures["peak"]:
            found.append(FrameworkReading(ordinal, **figures, limit=_torch_limit(cuda, ordinal)))
    return found


def _torch_limit(cuda: Any, ordinal: int) -> Optional[int]:
    """Return the limit that the script has set; older releases do not tell it."""
    told = getattr(cuda, "get_per_process_memory_fraction", None)
    fraction = 1.0 if told is None else told(ordinal)
    return int(fraction * cuda.get_device_properties(ordinal).total_memory) if fraction < 1 else None


def _watch_torch(cuda: Any, begin: "Callable[[], object]") -> None:
    """Have *begin* called as PyTorch initialises CUDA: it then calls what is in this list, once."""
    if not cuda.is_initialized():
        cuda._queued_calls.append((begin, []))


# CuPy: its default memory pool. It tells no peak, and of its pool of pinned memory only the number of free blocks.

_CUPY_FIGURES = {"in_use": "used_bytes", "held": "total_bytes", "limit": "get_limit"}
"""The names of the pool's methods. Each is of the current device."""


def _read_cupy(cuda: Any) -> "list[FrameworkReading]":
    pool = sys.modules["cupy"].get_default_memory_pool()
    found = []
    for ordinal in initialised_gpus():
        # Of this thread only. To go back to GPU 0, which the script may not use, would make a context on it.
        cuda.Device(ordinal).use()
        figures = {figure: getattr(pool, method)() for figure, method in _CUPY_FIGURES.items()}
        if figures["held"]:
            figures["limit"] = figures["limit"] or None
            found.append(FrameworkReading(ordinal, **figures))
    return found


# RMM: those of the current memory resource's layers that can tell a figure. Only the script can add a statistics
# adaptor, and only a pool has a size. Without both, RMM tells nothing. Within a block of ``rmm.statistics`` the adaptor
# counts from the block's beginning, below zero if more was freed since.

_RMM_FIGURES = {"in_use": "current_bytes", "peak": "peak_bytes"}  # in ``StatisticsResourceAdaptor.allocation_counts``


def _read_rmm(mr: Any) -> "list[FrameworkReading]":
    found = []
    known = mr.get_log_filenames()  # for each GPU that has a resource; to ask for that of another would make one
    for ordinal in filter(known.__contains__, initialised_gpus()):
        figures: dict[str, int] = {}
        layer = mr.get_per_device_resource(ordinal)
        while layer is not None:
            counts = getattr(layer, "allocation_counts", None)
            if counts is not None and "in_use" not in figures and _rmm_count(counts, "current_bytes") >= 0:
                figures.update((figure, _rmm_count(counts, name)) for figure, name in _RMM_FIGURES.items())
            if hasattr(layer, "pool_size"):
                figures["held"] = layer.pool_size()
            layer = layer.get_upstream() if hasattr(layer, "get_upstream") else None
        if figures:
            found.append(FrameworkReading(ordinal, **figures))
    return found


def _rmm_count(counts: Any, name: str) -> int:
    """Return one of the *counts*: older releases have them in a dictionary."""
    return int(counts[name] if isinstance(counts, dict) else getattr(counts, name))


_JAX = (
    *("XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"),
    *("XLA_PYTHON_CLIENT_ALLOCATOR", "TF_FORCE_UNIFIED_MEMORY"),
)
_TORCH = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"

READERS = (
    Reader("jax", "JAX", "jax._src.xla_bridge", _JAX, _jax_begins, _read_jax),  # it imports more when it compiles
    Reader("pytorch", "PyTorch", "torch.cuda", _TORCH, _torch_begins, _read_torch, _watch_torch),
    Reader("cupy", "CuPy", "cupy.cuda", ("CUPY_GPU_MEMORY_LIMIT",), has_threads, _read_cupy),
    Reader("rmm", "RMM", "rmm.mr", (), has_threads, _read_rmm),
)
