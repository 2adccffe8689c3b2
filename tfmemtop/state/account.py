"""A process's memory on one GPU, split without remainder into what is known of it.

Exact are NVML's total, as of its last reading (once a second, and right after TensorFlow has made its
devices), and what is in use of a pool; a pool's size too, with the probe. The context is exact, to the
2 MiB that NVML counts in, where NVML was read between the making of the devices and the script's first
operation. Nobody waits for that reading: of a script that goes on at once, the context is the least
that was ever seen beside its pools, or the usual figure if that is less. Outside is what is left over:
as exact as the others, and wrong for a moment where a pool has grown since NVML's reading.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop.state.lookup import device_of
from tfmemtop.state.model import Hooked, State
from tfmemtop.units import MIB

USUAL_CONTEXT = 520 * MIB
"""A CUDA context with TensorFlow's kernels, measured on an H200 (driver 580, TensorFlow 2.21)."""

USUAL_LIBRARIES = 90 * MIB
"""Workspaces of cuBLAS and cuDNN and late kernels, outside context and pool; measured likewise."""

_LARGEST_CONTEXT = 2 * USUAL_CONTEXT
"""What is more is no context alone: something else took memory before TensorFlow did."""


@dataclass(frozen=True, slots=True)
class PoolPart:
    """One logical device's pool; bytes. ``cached`` is ``None`` where the pool's size is not known."""

    device: str
    in_use: int
    cached: int | None
    peak: int | None
    limit: int | None
    allocator: str | None


@dataclass(frozen=True, slots=True)
class Account:
    """What process ``pid`` holds on GPU ``gpu``, in bytes.

    ``total`` is NVML's, ``None`` where it says nothing of single processes. Where ``outside`` is
    known, context, in use, cached and outside add up to it. Where a pool's size is not known,
    ``outside`` is ``None`` and ``rest`` holds cached and outside together. ``context_exact`` tells
    whether the context was measured or is the usual figure. ``device_used`` is the whole card's.
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
    """The account of process *pid* on each GPU it holds memory on, or has an allocator on."""
    process = state.processes.get(pid)
    hooked = process.hooked if process else None
    for index, device in state.devices.items():
        share = device.by_pid.get(pid)
        pools = tuple(_pools(state, pid, hooked, index)) if hooked and pid in device.logical else ()
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
        cached = None if reading.pool is None else max(0, reading.pool - reading.in_use)
        limit = reading.limit if reading.limit is not None else effective.limit if effective else None
        yield PoolPart(name, reading.in_use, cached, reading.peak, limit, effective.allocator if effective else None)


def _balance(
    pid: int, index: int, total: int | None, hooked: Hooked | None, pools: tuple[PoolPart, ...], used: int | None
) -> Account:
    if total is None or not pools:
        return Account(pid, index, total, None, False, pools, None, None, used)
    held = sum(pool.in_use + (pool.cached or 0) for pool in pools)
    # NVML is read less often than the allocators: a pool that has just grown is in no total yet.
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
