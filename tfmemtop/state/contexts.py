"""A process's CUDA context on a GPU: what NVML counts for the process before it has computed anything, less its pools.

NVML and the allocators are read at different moments, so a figure is exact only between two readings of
the allocators that agree: NVML was read after TensorFlow had made its devices, and a reading of the
allocators after that still finds nothing but TensorFlow's own scratch, which it takes while making them.
"""

from tfmemtop import events
from tfmemtop.state.model import Context, Hooked
from tfmemtop.units import MIB

NOTHING_COMPUTED = 4096
"""Bytes: a peak above this means that an operation has run.

Once TensorFlow has made its devices, its own scratch is in use: 1792 bytes on an H200. Even the smallest operations
load kernels and make cuBLAS allocate its workspace. Both are outside the pool, as the context is.
"""

FIRST_REGION = 2 * MIB
"""Bytes that a growing pool of BFC takes first, for that scratch. They are known without the probe."""


def total_read(hooked: Hooked, gpu: int, reading: events.DeviceReading, used: int, pool: int | None) -> None:
    """Store NVML's *reading*: the process has *used* bytes on *gpu*, of them *pool* in its pools, if that is known."""
    context = hooked.contexts.setdefault(gpu, Context())
    context.unconfirmed = used, reading.t
    if pool is None or pool > used:
        return
    # The pools were read a little earlier, and pools mostly grow: the rest is rarely too small.
    rest = used - pool
    if not context.exact:
        context.size = rest if context.size is None else min(rest, context.size)
    context.recent.append(rest)


def pools_read(hooked: Hooked, gpu: int, readings: list[events.Allocator]) -> None:
    """Confirm NVML's last total by *readings*, the newest of all allocators of the process on *gpu*.

    The context becomes exact if all readings are newer than the total and show that nothing was computed.
    """
    context = hooked.contexts.get(gpu)
    if context is None or context.unconfirmed is None:
        return
    used, at = context.unconfirmed
    if any(reading.t <= at for reading in readings):
        return
    context.unconfirmed = None
    peaks = [reading.peak for reading in readings]
    pools = [_pool(reading, hooked.effective.get(reading.device)) for reading in readings]
    if None in peaks or None in pools or max(peak or 0 for peak in peaks) > NOTHING_COMPUTED:
        return
    rest = used - sum(pool or 0 for pool in pools)
    if rest >= 0:
        context.size = min(rest, context.size) if context.exact and context.size is not None else rest
        context.exact = True


def _pool(reading: events.Allocator, effective: events.Effective | None) -> int | None:
    if reading.pool is None and effective and effective.growth and effective.allocator == "bfc":
        return FIRST_REGION if reading.peak else 0
    return reading.pool
