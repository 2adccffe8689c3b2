"""Reads PyTorch: the statistics of its caching allocator, which it keeps for each GPU."""

from typing import Any, Callable, Optional

from .framework_reader import FrameworkReading, Reader

FIGURES = {
    "in_use": ("allocated_bytes", "all", "current"),
    "held": ("reserved_bytes", "all", "current"),
    "peak": ("allocated_bytes", "all", "peak"),
    "segments": ("segment", "all", "current"),
}
"""The places of the figures in ``torch.cuda.memory_stats_as_nested_dict()``."""

_WITHOUT_FIGURES = "does not yet support getDeviceStats"  # an allocator of the script's, such as RMM's


def _initialised(cuda: Any) -> bool:
    return bool(cuda.is_initialized())


def _read(cuda: Any) -> "list[FrameworkReading]":
    found = []
    for ordinal in range(cuda.device_count() if _initialised(cuda) else 0):
        try:
            told = cuda.memory_stats_as_nested_dict(ordinal)
        except RuntimeError as error:
            if _WITHOUT_FIGURES not in str(error):
                raise
            return []
        figures = {figure: told[of][pool][kind] for figure, (of, pool, kind) in FIGURES.items()}
        if figures["peak"]:
            found.append(FrameworkReading(ordinal, **figures, limit=_limit(cuda, ordinal)))
    return found


def _limit(cuda: Any, ordinal: int) -> Optional[int]:
    """Return the limit that the script has set; older releases do not tell it."""
    told = getattr(cuda, "get_per_process_memory_fraction", None)
    fraction = 1.0 if told is None else told(ordinal)
    return int(fraction * cuda.get_device_properties(ordinal).total_memory) if fraction < 1 else None


def _watch(cuda: Any, begin: "Callable[[], object]") -> None:
    """Have *begin* called as PyTorch initialises CUDA: it then calls what is in this list, once."""
    if not cuda.is_initialized():
        cuda._queued_calls.append((begin, []))


PYTORCH = Reader(
    framework="pytorch",
    title="PyTorch",
    module="torch.cuda",
    variables=("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"),
    begins=_initialised,
    read=_read,
    watch=_watch,
)
