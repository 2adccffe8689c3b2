"""Figures of a whole run: its peaks, and how its pools took memory. Pure."""

from dataclasses import dataclass
from enum import Enum, auto

from tfmemtop.events.device_names import is_cpu, is_gpu
from tfmemtop.state.model import RunState


class PoolKind(Enum):
    """The way in which TensorFlow's pools took memory in a run."""

    NO_DEVICE = auto()
    CPU_ONLY = auto()
    CUDA = auto()  # cuda_malloc_async: CUDA's own pool
    GROWING = auto()
    RESERVED = auto()  # growth off
    UNKNOWN = auto()  # or not the same on all GPUs

    @property
    def on_gpu(self) -> bool:
        return self not in (PoolKind.NO_DEVICE, PoolKind.CPU_ONLY)


def pool_kind(run: RunState) -> PoolKind:
    """Return in which way the pools of *run* took memory, by what TensorFlow reported of its devices."""
    gpus = [effective for name, effective in run.effective.items() if is_gpu(name)]
    if not gpus:
        on_cpu = any(is_cpu(name) for name in run.effective)
        return PoolKind.CPU_ONLY if on_cpu else PoolKind.NO_DEVICE
    if any(effective.allocator == "cuda_malloc_async" for effective in gpus):
        return PoolKind.CUDA
    growths = {effective.growth for effective in gpus if effective.growth is not None}
    if len(growths) != 1:
        return PoolKind.UNKNOWN
    return PoolKind.GROWING if growths == {True} else PoolKind.RESERVED


@dataclass(frozen=True, slots=True)
class Peaks:
    """The most bytes over the whole run; ``None`` where that is not known.

    ``gpus`` is the number of GPUs on which the run held memory. With several, the bytes are those of the GPU that had
    most.
    """

    in_use: int | None
    pool: int | None
    process_total: int | None
    gpus: int

    @property
    def several(self) -> bool:
        """Whether these are the figures of one GPU of several."""
        return self.gpus > 1


def peaks(run: RunState) -> Peaks:
    """Return the peaks of *run*."""
    gpus = sum(1 for total in run.totals.values() if total)
    return Peaks(run.peak_in_use, run.peak_pool, run.peak_process_total, gpus)
