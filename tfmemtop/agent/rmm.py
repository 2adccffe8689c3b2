"""Reads RMM: those of the current memory resource's layers that can tell a figure.

Only the script can add a statistics adaptor, and only a pool has a size. Without both, RMM tells nothing.
"""

from typing import Any

from .framework_reader import FrameworkReading, Reader, has_threads, initialised_gpus

FIGURES = {
    "in_use": "current_bytes",
    "peak": "peak_bytes",
}
"""The names of the figures in ``StatisticsResourceAdaptor.allocation_counts``."""


def _read(mr: Any) -> "list[FrameworkReading]":
    found = []
    known = mr.get_log_filenames()  # for each GPU that has a resource; to ask for that of another would make one
    for ordinal in filter(known.__contains__, initialised_gpus()):
        figures: dict[str, int] = {}
        layer = mr.get_per_device_resource(ordinal)
        while layer is not None:
            counts = getattr(layer, "allocation_counts", None)
            if counts is not None and "in_use" not in figures:
                figures.update((figure, _count(counts, name)) for figure, name in FIGURES.items())
            if hasattr(layer, "pool_size"):
                figures["held"] = layer.pool_size()
            layer = layer.get_upstream() if hasattr(layer, "get_upstream") else None
        if figures:
            found.append(FrameworkReading(ordinal, **figures))
    return found


def _count(counts: Any, name: str) -> int:
    """Return one of the *counts*: older releases have them in a dictionary."""
    return int(counts[name] if isinstance(counts, dict) else getattr(counts, name))


RMM = Reader(
    framework="rmm",
    title="RMM",
    module="rmm.mr",
    variables=(),
    begins=has_threads,
    read=_read,
)
