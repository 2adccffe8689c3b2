"""The moment in which TensorFlow makes its devices: by whose call, and under which environment."""

import os
import sys
from types import FrameType
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .core import Agent

VARIABLES = (
    *("TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR", "TF_PER_DEVICE_MEMORY_LIMIT_MB"),
    *("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "TF_GPU_HOST_MEM_LIMIT_IN_MB", "TF_FORCE_UNIFIED_MEMORY"),
    *("TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC", "TF_ENABLE_GPU_GARBAGE_COLLECTION", "TF_DETERMINISTIC_ALLOCATOR"),
    *("TF_CUDNN_WORKSPACE_LIMIT_IN_MB", "TF_CUBLAS_WORKSPACE_LIMIT_IN_MB", "TF_CUFFT_WORKSPACE_LIMIT_IN_MB"),
    *("TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB", "TF_MIN_GPU_MULTIPROCESSOR_COUNT"),
    *("TF_XLA_FLAGS", "XLA_FLAGS", "XLA_CLIENT_MEM_FRACTION"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_MODULE_LOADING", "NVIDIA_VISIBLE_DEVICES"),
)
"""What TensorFlow and CUDA themselves read that bears on GPU memory. Nothing else of the environment is sent."""

_VALUE = 500  # characters
_CODE = 120

_LIBRARIES = {
    *("tensorflow", "keras", "tf_keras", __name__.split(".")[0]),
    *("importlib", "contextlib", "functools", "threading", "concurrent"),  # between TensorFlow's own frames
}


def callers_line() -> "tuple[str, int]":
    """File and line of the innermost frame that is neither TensorFlow's, Keras's nor ours; ``"", 0`` without one."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).split(".")[0] not in _LIBRARIES:
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0


class Making:
    """Tells when devices are made, and what TensorFlow raised instead."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        self._refused: set[tuple[str, int, str]] = set()

    def made(self) -> None:
        """The devices are there."""
        self._refused.clear()
        self._tell(*callers_line(), None)

    def refused(self, error: BaseException) -> None:
        """TensorFlow raises *error* where it would make them, and will at each attempt: each line tells once."""
        found = (*callers_line(), f"{type(error).__name__}: {error}")
        if found not in self._refused:
            self._refused.add(found)
            self._tell(*found)

    def _tell(self, file: str, line: int, error: Optional[str]) -> None:
        import linecache  # TensorFlow has imported it long before

        self._agent.send(
            "initialised",
            file=file,
            line=line,
            code=linecache.getline(file, line).strip()[:_CODE],
            error=error,
            variables={name: os.environ[name][:_VALUE] for name in VARIABLES if name in os.environ},
        )
