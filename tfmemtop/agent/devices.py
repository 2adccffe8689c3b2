"""Reports when TensorFlow makes its devices, and finds them, their physical GPUs, and how each allocator is read."""

import ctypes
import os
from typing import Any, Callable, NamedTuple, Optional

from .callsite import Line, callers_line
from .environment import variable
from .layouts import Reading
from .messenger import Messenger
from .settings import MIB

VARIABLES = (
    *("TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR", "TF_PER_DEVICE_MEMORY_LIMIT_MB"),
    *("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "TF_GPU_HOST_MEM_LIMIT_IN_MB", "TF_FORCE_UNIFIED_MEMORY"),
    *("TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC", "TF_ENABLE_GPU_GARBAGE_COLLECTION", "TF_DETERMINISTIC_ALLOCATOR"),
    *("TF_CUDNN_WORKSPACE_LIMIT_IN_MB", "TF_CUBLAS_WORKSPACE_LIMIT_IN_MB", "TF_CUFFT_WORKSPACE_LIMIT_IN_MB"),
    *("TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB", "TF_MIN_GPU_MULTIPROCESSOR_COUNT"),
    *("TF_XLA_FLAGS", "XLA_FLAGS", "XLA_CLIENT_MEM_FRACTION"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_MODULE_LOADING", "NVIDIA_VISIBLE_DEVICES"),
)
"""Variables that TensorFlow and CUDA read and that affect GPU memory. No other variable is sent."""

_VALUE = 500  # characters


class Making:
    """Reports when devices are made, by which line and in which environment, or what TensorFlow raised instead."""

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger
        self._refused: set[tuple[Line, str]] = set()

    def made(self) -> None:
        """Report that the devices have been made."""
        self._refused.clear()
        self._tell(callers_line(), None)

    def refused(self, error: BaseException) -> None:
        """Report that TensorFlow raises *error* instead of making devices: once for each line, not at each attempt."""
        line, text = callers_line(), f"{type(error).__name__}: {error}"
        if (line, text) not in self._refused:
            self._refused.add((line, text))
            self._tell(line, text)

    def _tell(self, line: Line, error: Optional[str]) -> None:
        variables = {name: (variable(name) or "")[:_VALUE] for name in VARIABLES if variable(name) is not None}
        self._messenger.send("initialised", **line.fields(), error=error, variables=variables)


Reader = Callable[[Any], Reading]
"""A function that reads one allocator, given TensorFlow's context handle. It must initialise nothing."""


class Device(NamedTuple):
    """A logical device as TensorFlow made it; ``limit`` is bytes, ``physical`` CUDA's ordinal."""

    name: str  # GPU:0
    allocator_name: Optional[str]  # GPU_0_bfc
    physical: Optional[int]
    growth: Optional[bool]
    limit: Optional[int]
    read: Optional[Reader]  # None where TensorFlow's public API has no access

    @property
    def allocator(self) -> str:
        """The kind of its allocator."""
        return "cuda_malloc_async" if asynchronous() and self.name != "CPU:0" else "bfc"


def local_devices(context: Any, options: Any, memory_info: Callable[[Any, str], "dict[str, int]"]) -> "list[Device]":
    """Return the logical devices of this process whose allocators can be read.

    *context* is TensorFlow's context, which must be initialised. *options* are the GPUOptions with which it was made,
    ``None`` if they are not known. *memory_info* is TensorFlow's ``TFE_GetMemoryInfo``.
    """
    server = context._server_def or context._collective_ops_server_def
    prefix = "" if server is None else f"/job:{server.job_name}/replica:0/task:{server.task_index}/"
    names = [device.name for device in context._logical_devices if device.name.startswith(prefix)]
    gpus = [name for name in names if ":GPU:" in name]
    places = gpu_places(options) if options is not None else []
    if len(places) != len(gpus):
        places = [(None, None)] * len(gpus)
    growth = growth_by_environment(None if options is None else bool(options.allow_growth))
    devices = []
    for index, (name, (physical, limit_mb)) in enumerate(zip(gpus, places)):
        allocator_name = None if asynchronous() else f"GPU_{index}_bfc"
        limit = int((limit_mb or 0) * MIB) or None
        reader = _public_reader(memory_info, name)
        devices.append(Device(f"GPU:{index}", allocator_name, physical, growth, limit, reader))
    cpus = [name for name in names if name.endswith(":CPU:0")]
    if cpus and uses_cpu_pool():
        limit_text = variable("TF_CPU_BFC_MEM_LIMIT_IN_MB") or ""
        limit = int(limit_text) * MIB or None if limit_text.isdecimal() else None
        # TensorFlow lets this pool always grow.
        reader = _public_reader(memory_info, cpus[0])
        devices.append(Device("CPU:0", "bfc_cpu_allocator_for_gpu", None, True, limit, reader))
    return devices


def uses_cpu_pool() -> bool:
    """Return whether TensorFlow's CPU device allocates from a pool."""
    return (variable("TF_CPU_ALLOCATOR_USE_BFC") or "").lower() in ("true", "1")


def asynchronous() -> bool:
    """Return whether TensorFlow leaves its GPUs' memory to CUDA's own pool."""
    return variable("TF_GPU_ALLOCATOR") == "cuda_malloc_async"


def growth_by_environment(asked: Optional[bool]) -> Optional[bool]:
    """Return the growth that TensorFlow uses: the environment wins over the value that was *asked* for."""
    return {"true": True, "false": False}.get(variable("TF_FORCE_GPU_ALLOW_GROWTH") or "", asked)


def gpu_places(options: Any) -> "list[tuple[Optional[int], Optional[float]]]":
    """Return CUDA's ordinal and the limit in MiB (or ``None``) of each logical GPU, in TensorFlow's order."""
    visible = [int(ordinal) for ordinal in options.visible_device_list.split(",") if ordinal]
    places = []
    for index, physical in enumerate(visible):
        made = options.experimental.virtual_devices
        device = made[index] if index < len(made) else None
        if device is None or not device.memory_limit_mb:
            places.append((0, index, 0, physical, None))
            continue
        for part, limit in enumerate(device.memory_limit_mb):
            order = device.device_ordinal[part] if part < len(device.device_ordinal) else 0
            places.append((order, index, part, physical, limit))
    # The script's own ordinals come first, then the order of the GPUs.
    places.sort(key=lambda place: place[:3])
    return [(physical, limit) for _, _, _, physical, limit in places]


def _public_reader(memory_info: Callable[[Any, str], "dict[str, int]"], name: str) -> Reader:
    def read(handle: Any) -> Reading:
        info = memory_info(handle, name)
        return Reading(info["current"], info["peak"])

    return read


def gpu_uuid(ordinal: int) -> Optional[str]:
    """Return the UUID of CUDA's device *ordinal* as NVML spells it, from the driver that TensorFlow has loaded.

    ``None`` if there is no such driver or device.
    """
    device = ctypes.c_int()
    uuid, parent = (ctypes.c_ubyte * 16)(), (ctypes.c_ubyte * 16)()
    try:
        cuda = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        if cuda.cuDeviceGet(ctypes.byref(device), ordinal) or cuda.cuDeviceGetUuid_v2(uuid, device):
            return None
        # For a slice of a GPU (MIG) this is the slice's UUID. The older call still returns that of the whole GPU.
        is_slice = not cuda.cuDeviceGetUuid(parent, device) and bytes(parent) != bytes(uuid)
    except (OSError, AttributeError):  # the driver is not loaded, or too old to have the call
        return None
    digits = bytes(uuid).hex()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return ("MIG-" if is_slice else "GPU-") + "-".join(parts)


def gpu_count() -> Optional[int]:
    """Return how many GPUs the driver that TensorFlow has loaded shows this process; ``None`` without such a driver."""
    count = ctypes.c_int()
    try:
        cuda = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        return None if cuda.cuDeviceGetCount(ctypes.byref(count)) else count.value
    except (OSError, AttributeError):
        return None
