"""Reads CuPy: its default memory pool. It tells no peak, and of its pool of pinned memory no bytes."""

import sys
from typing import Any

from .framework_reader import FrameworkReading, Reader, has_threads, initialised_gpus

FIGURES = {
    "in_use": "used_bytes",
    "held": "total_bytes",
    "limit": "get_limit",
}
"""The names of the pool's methods. Each is of the current device."""


def _read(cuda: Any) -> "list[FrameworkReading]":
    pool = sys.modules["cupy"].get_default_memory_pool()
    found = []
    for ordinal in initialised_gpus():
        # Of this thread only. To go back to GPU 0, which the script may not use, would make a context on it.
        cuda.Device(ordinal).use()
        figures = {figure: getattr(pool, method)() for figure, method in FIGURES.items()}
        if figures["held"]:
            figures["limit"] = figures["limit"] or None
            found.append(FrameworkReading(ordinal, **figures))
    return found


CUPY = Reader(
    framework="cupy",
    title="CuPy",
    module="cupy.cuda",
    variables=("CUPY_GPU_MEMORY_LIMIT",),
    begins=has_threads,
    read=_read,
)
