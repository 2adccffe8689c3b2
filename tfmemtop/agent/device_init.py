"""The moment when TensorFlow makes its devices: the line that caused it, and the environment then."""

from typing import Optional

from .callsite import Line, callers_line
from .environment import variable
from .messenger import Messenger

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
    """Reports when devices are made, or what TensorFlow raised instead."""

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
