"""A process's memory on one GPU, divided without remainder into context, in use, cached and outside.

These figures are exact: NVML's total at its last reading (once a second, and right after TensorFlow has
made its devices), the memory in use of a pool, and, with the probe, the size of a pool. The context is
exact to 2 MiB, NVML's unit, if NVML was read after TensorFlow made its devices and before the script's
first operation. The script does not wait for that reading. If it goes on at once, the context is the
least that was ever found beside its pools, or the usual figure if that is less. Outside is the rest: it
is as exact as the others, and wrong for a moment if a pool has grown since NVML's reading.
"""

from collections.abc import Iterator

import msgspec

from tfmemtop.state.lookup import cached_of, device_of
from tfmemtop.state.model import Hooked, State
from tfmemtop.units import MIB

USUAL_CONTEXT = 520 * MIB
"""A CUDA context with TensorFlow's kernels, measured on an H200 (driver 580, TensorFlow 2.21)."""

USUAL_LIBRARIES = 90 * MIB
"""Workspaces of cuBLAS and cuDNN, and kernels that are loaded late: outside context and pool; measured likewise."""

_LARGEST_CONTEXT = 2 * USUAL_CONTEXT
"""More than this is not a context alone: something else allocated memory before TensorFlow did."""


class PoolPart(msgspec.Struct, frozen=True):
    """One logical device's pool, in bytes. ``cached`` is ``None`` where the pool's size is not known."""

    device: str
    in_use: int
    cached: int | None
    peak: int | None
    limit: int | None
    allocator: str | None


class Account(msgspec.Struct, frozen=True):
    """The memory of process ``pid`` on GPU ``gpu``, in bytes.

    ``total`` is NVML's figure, ``None`` where NVML does not report single processes. Where ``outside`` is known,
    context, in use, cached and outside add up to ``total``. Where a pool's size is not known, ``outside`` is ``None``
    and ``rest`` is cached and outside together. ``context_exact`` is true if the context was measured, false if it is
    an estimate. ``device_used`` is the used memory of the whole card.
    """

    pid: int
    gpu: int
    total: int | None
    context: int | None
    context_exact: bool
    pools: tuple[PoolPart, ...]
    outside: int | None
    rest: int | None
    device_used: int | None

    @property
    def in_use(self) -> int:
        return sum(pool.in_use for pool in self.pools)

    @property
    def cached(self) -> int | None:
        sizes = [pool.cached for pool in self.pools]
        return None if None in sizes else sum(size for size in sizes if size is not None)


def accounts(state: State, pid: int) -> Iterator[Account]:
    """Yield the account of process *pid* on each GPU on which it has memory or an allocator."""
    process = state.processes.get(pid)
    hooked = process.hooked if process else None
    for index, device in state.devices.items():
        share = device.by_pid.get(pid)
        pools = tuple(_pools(state, pid, hooked, index)) if hooked else ()
        if share is None and (not pools or (hooked is not None and hooked.ended)):
            continue
        used = device.reading.used if device.reading else None
        yield _balance(pid, index, share.used if share else None, hooked, pools, used)


def _pools(state: State, pid: int, hooked: Hooked, index: int) -> Iterator[PoolPart]:
    for name, reading in sorted(hooked.allocators.items()):
        device = device_of(state, pid, name)
        if device is None or device.info.index != index or reading.in_use is None:
            continue
        effective = hooked.effective.get(name)
        cached = cached_of(reading.pool, reading.in_use)
        limit = reading.limit if reading.limit is not None else effective.limit if effective else None
        yield PoolPart(name, reading.in_use, cached, reading.peak, limit, effective.allocator if effective else None)


def _balance(
    pid: int, index: int, total: int | None, hooked: Hooked | None, pools: tuple[PoolPart, ...], used: int | None
) -> Account:
    if total is None or not pools:
        return Account(pid, index, total, None, False, pools, None, None, used)
    held = sum(pool.in_use + (pool.cached or 0) for pool in pools)
    # NVML is read less often than the allocators: its total may not yet contain the latest growth of a pool.
    total = max(total, held)
    context, exact = _context(hooked, index)
    context = min(context, total - held)
    left = total - held - context
    if any(pool.cached is None for pool in pools):
        return Account(pid, index, total, context, exact, pools, None, left, used)
    return Account(pid, index, total, context, exact, pools, left, None, used)


def _context(hooked: Hooked | None, index: int) -> tuple[int, bool]:
    seen = hooked.contexts.get(index) if hooked else None
    if seen is None or seen.size is None or seen.size > _LARGEST_CONTEXT:
        return USUAL_CONTEXT, False
    return (seen.size, True) if seen.exact else (min(seen.size, USUAL_CONTEXT), False)
