"""What a reader of another framework is, and which GPUs the process has initialised.

A script may use other frameworks beside TensorFlow, or in its place. A reader runs only if the script has imported the
framework, and the framework has initialised its devices. It calls what the framework offers for that, and nothing that
would import, initialise or allocate.
"""

import ctypes
import os
from typing import Any, Callable, NamedTuple, Optional


class FrameworkReading(NamedTuple):
    """What a framework holds on the GPU with CUDA's ``ordinal``, in bytes; ``None`` where it does not tell a figure.

    ``in_use`` is allocated to its arrays, ``held`` is what it has taken from CUDA. ``segments`` is the number of pieces
    in which it has taken that.
    """

    ordinal: int
    in_use: Optional[int] = None
    held: Optional[int] = None
    peak: Optional[int] = None
    limit: Optional[int] = None
    segments: Optional[int] = None


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
