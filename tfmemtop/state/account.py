"""A process's memory on one GPU, divided without remainder into context, in use, cached, other frameworks and outside.

All of it is of one moment: NVML's last reading (once a second, and right after TensorFlow has made its devices) of a
process that lives, and the readings of its allocators at that time. While a process ends, its pool has gone and other
memory is still there: that is no account, so the one before stays. The figures are exact: NVML's total, the memory in
use of a pool, and, with the probe, the size of a pool. The context is exact to 2 MiB, NVML's unit, if NVML was read
after TensorFlow made its devices and before the script's first operation. The script does not wait for that reading. If
it goes on at once, the context is the least that was ever found beside its pools, or the usual figure if that is less.
Outside is the rest: it is as exact as the others, and too large for a second if a pool grew in the tenth of a second
before NVML's reading.
"""

from collections.abc import Iterator

import msgspec

from tfmemtop.events import Allocator, Framework
from tfmemtop.frameworks import FrameworkName
from tfmemtop.state.frameworks import frameworks_of
from tfmemtop.state.lookup import allocators_of, cached_of, device_of, limit_of, sum_known
from tfmemtop.state.model import Came, DeviceState, Hooked, Measured, State
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

    @property
    def pool(self) -> int | None:
        """The size of the pool."""
        return None if self.cached is None else self.in_use + self.cached


class Account(msgspec.Struct, frozen=True):
    """The memory of process ``pid`` on GPU ``gpu``, in bytes.

    ``t`` is its moment in session seconds, ``None`` where total and pools are not known together. ``total`` is NVML's
    figure, ``None`` where NVML does not report single processes. Where ``outside`` is known,
    context, in use, cached and outside add up to ``total``. Where a pool's size is not known, ``outside`` is ``None``
    and ``rest`` is cached and outside together. ``context_exact`` is true if the context was measured, false if it is
    an estimate. ``device_used`` is the used memory of the whole card. ``frameworks`` are the other frameworks, whose
    memory is no part of ``outside``. ``came`` says how much of ``outside`` came as they began.
    """

    pid: int
    gpu: int
    t: float | None
    total: int | None
    context: int | None
    context_exact: bool
    pools: tuple[PoolPart, ...]
    outside: int | None
    rest: int | None
    device_used: int | None
    frameworks: tuple[Framework, ...] = ()
    came: tuple[Came, ...] = ()

    @property
    def every_pool(self) -> tuple[PoolPart | Framework, ...]:
        """TensorFlow's pools, and those of the other frameworks."""
        return *self.pools, *self.frameworks

    @property
    def by_framework(self) -> dict[FrameworkName, int]:
        """The bytes that each other framework holds."""
        sizes: dict[FrameworkName, int] = {}
        for one in self.frameworks:
            if one.pool is not None:
                sizes[one.framework] = sizes.get(one.framework, 0) + one.pool
        return sizes

    @property
    def in_use(self) -> int:
        return sum(pool.in_use for pool in self.pools)

    @property
    def cached(self) -> int | None:
        return sum_known(pool.cached for pool in self.pools) if self.pools else 0


def accounts(state: State, pid: int) -> Iterator[Account]:
    """Yield the account of process *pid* on each GPU on which it has memory or an allocator."""
    process = state.processes.get(pid)
    hooked = process.hooked if process else None
    for index, device in state.devices.items():
        share = device.by_pid.get(pid)
        used = device.reading.used if device.reading else None
        if hooked is None:
            if share is not None:
                yield Account(pid, index, None, share.used, None, False, (), None, None, used)
            continue
        measured = _measured(state, pid, hooked, device)
        pools = tuple(_pools(state, pid, hooked, index, measured.readings if measured else hooked.allocators))
        frameworks = measured.frameworks if measured else tuple(frameworks_of(state, hooked, device))
        if share is None and (not (pools or frameworks) or hooked.ended):
            continue
        if measured is None or share is None or share.used is None:
            total = share.used if share else None
            yield Account(pid, index, None, total, None, False, pools, None, None, used, frameworks)
        else:
            yield _balance(pid, index, measured, hooked, pools)


def _measured(state: State, pid: int, hooked: Hooked, device: DeviceState) -> Measured | None:
    """Return total and pools of one moment; ``None`` if they are not known."""
    index, reading, share = device.info.index, device.reading, device.by_pid.get(pid)
    if index in hooked.contexts and (known := hooked.contexts[index].measured):
        return known
    if reading is None or share is None or share.used is None:
        return None
    # No allocator had been read at NVML's reading: their first readings are a moment later.
    pools = {one.device: one for one in allocators_of(state, pid, hooked, device)}
    first = Measured(reading.t, share.used, reading.used, pools, tuple(frameworks_of(state, hooked, device)))
    return first if (pools or first.frameworks) and first.is_possible else None


def _pools(state: State, pid: int, hooked: Hooked, index: int, readings: dict[str, Allocator]) -> Iterator[PoolPart]:
    for name, reading in sorted(readings.items()):
        device = device_of(state, pid, name)
        if device is None or device.info.index != index or reading.in_use is None:
            continue
        effective = hooked.effective.get(name)
        cached = cached_of(reading.pool, reading.in_use)
        limit = limit_of(hooked, name)
        yield PoolPart(name, reading.in_use, cached, reading.peak, limit, effective.allocator if effective else None)


def _balance(pid: int, index: int, measured: Measured, hooked: Hooked, pools: tuple[PoolPart, ...]) -> Account:
    t, total, used = measured.t, measured.total, measured.card_used
    held = sum(pool.in_use + (pool.cached or 0) for pool in pools) + measured.of_frameworks
    context, exact = context_size(hooked, index)
    context = min(context, total - held)
    left = total - held - context
    if any(pool.cached is None for pool in pools):
        return Account(pid, index, t, total, context, exact, pools, None, left, used, measured.frameworks)
    came = tuple(hooked.contexts[index].came) if index in hooked.contexts else ()
    came = came if sum(one.bytes for one in came) <= left else ()  # else some of it has gone again
    return Account(pid, index, t, total, context, exact, pools, left, None, used, measured.frameworks, came)


def context_size(hooked: Hooked, index: int) -> tuple[int, bool]:
    """Return the bytes of the process's CUDA context on GPU *index*, and whether they were measured."""
    seen = hooked.contexts.get(index)
    if seen is None or seen.size is None or seen.size > _LARGEST_CONTEXT:
        return USUAL_CONTEXT, False
    return (seen.size, True) if seen.exact else (min(seen.size, USUAL_CONTEXT), False)
