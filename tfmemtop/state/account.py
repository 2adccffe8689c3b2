"""A process's memory on one GPU, divided without remainder into context, in use, cached, other frameworks and outside.

All of it is of one moment: NVML's last reading (once a second, and right after TensorFlow has made its devices) of a
process that lives, and the readings of its allocators at that time. While a process ends, its pool has gone and other
memory is still there: that is no account, so the one before stays. The figures are exact: NVML's total, the memory in
use of a pool, and, with the probe, the size of a pool. The context is exact to 2 MiB, NVML's unit, if NVML was read
after TensorFlow made its devices and before the script's first operation. The script does not wait for that reading. If
it goes on at once, the context is the least that was ever found beside its pools, or the usual figure if that is less.
Outside is the rest: it is as exact as the others, and too large for a second if a pool grew in the tenth of a second
before NVML's reading.

A :class:`Breakdown` has an account as slices that add up, with the memory in use by kind.
"""

from collections.abc import Iterator, Sequence
from enum import Enum

import msgspec

from tfmemtop.events import Allocator, Framework
from tfmemtop.events.machine import is_cpu
from tfmemtop.frameworks import FrameworkName
from tfmemtop.state.holdings import Holdings, holdings
from tfmemtop.state.lookup import allocators_of, cached_of, device_of, frameworks_of, hooked_of, limit_of, sum_known
from tfmemtop.state.model import DeviceState, Hooked, Measured, State
from tfmemtop.units import MIB

USUAL_CONTEXT = 520 * MIB
"""A CUDA context with TensorFlow's kernels, measured on an H200 (driver 580, TensorFlow 2.21)."""

USUAL_LIBRARIES = 90 * MIB
"""Workspaces of cuBLAS and cuDNN, and kernels that are loaded late: outside context and pool; measured likewise."""

_LARGEST_CONTEXT = 2 * USUAL_CONTEXT
"""More than this is not a context alone: something else allocated memory before TensorFlow did."""


class Account(msgspec.Struct, frozen=True):
    """The memory of process ``pid`` on GPU ``gpu``, in bytes.

    ``t`` is its moment in session seconds, ``None`` where total and pools are not known together. ``pools`` are the
    readings of TensorFlow's allocators. ``total`` is NVML's figure, ``None`` where NVML does not report single
    processes. Where ``outside`` is known,
    context, in use, cached and outside add up to ``total``. Where a pool's size is not known, ``outside`` is ``None``
    and ``rest`` is cached and outside together. ``context_exact`` is true if the context was measured, false if it is
    an estimate. ``device_used`` is the used memory of the whole card. ``frameworks`` are the other frameworks, whose
    memory is no part of ``outside``.
    """

    pid: int
    gpu: int
    t: float | None
    total: int | None
    context: int | None
    context_exact: bool
    pools: tuple[Allocator, ...]
    outside: int | None
    rest: int | None
    device_used: int | None
    frameworks: tuple[Framework, ...] = ()

    @property
    def every_pool(self) -> tuple[Allocator | Framework, ...]:
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
        return sum(pool.in_use or 0 for pool in self.pools)

    @property
    def cached(self) -> int | None:
        return sum_known(cached_of(pool.pool, pool.in_use) for pool in self.pools) if self.pools else 0


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
        read = sorted((measured.readings if measured else hooked.allocators).items())
        pools = tuple(one for name, one in read if device_of(state, pid, name) is device and one.in_use is not None)
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


def _balance(pid: int, index: int, measured: Measured, hooked: Hooked, pools: tuple[Allocator, ...]) -> Account:
    t, total, used = measured.t, measured.total, measured.card_used
    held = sum(max(pool.in_use or 0, pool.pool or 0) for pool in pools) + measured.of_frameworks
    context, exact = context_size(hooked, index)
    context = min(context, total - held)
    left = total - held - context
    if any(pool.pool is None for pool in pools):
        return Account(pid, index, t, total, context, exact, pools, None, left, used, measured.frameworks)
    return Account(pid, index, t, total, context, exact, pools, left, None, used, measured.frameworks)


def context_size(hooked: Hooked, index: int) -> tuple[int, bool]:
    """Return the bytes of the process's CUDA context on GPU *index*, and whether they were measured."""
    seen = hooked.contexts.get(index)
    if seen is None or seen.size is None or seen.size > _LARGEST_CONTEXT:
        return USUAL_CONTEXT, False
    return (seen.size, True) if seen.exact else (min(seen.size, USUAL_CONTEXT), False)


class MemoryPart(Enum):
    """What a slice contains. The parts that a census counts have the names that it uses."""

    CONTEXT = "context"
    VARIABLES = "variables"
    OPTIMIZER = "optimizer"
    METRICS = "metrics"
    TENSORS = "tensors"
    OTHER_IN_USE = "rest"  # in use, beyond the kinds that were counted
    IN_USE = "in use"  # all that is in use, where it is not divided by kind
    CACHED = "cached"
    JAX = "JAX"
    PYTORCH = "PyTorch"
    CUPY = "CuPy"
    RMM = "RMM"
    OUTSIDE = "outside"
    CACHED_AND_OUTSIDE = "cached+outside"  # where the size of the pool is not known
    UNREAD = "unread"  # all memory, where no allocator was read


KINDS = (MemoryPart.VARIABLES, MemoryPart.OPTIMIZER, MemoryPart.METRICS, MemoryPart.TENSORS)


class MemorySlice(msgspec.Struct, frozen=True):
    """``size`` bytes of a ``part``; not ``exact`` where the size is based on a usual figure, not a measured one."""

    part: MemoryPart
    size: int
    exact: bool = True


class Breakdown(msgspec.Struct, frozen=True):
    """A process's memory on GPU ``gpu``, or in its pool on the CPU (``gpu`` is ``None``): the slices add up to it.

    ``t`` is the moment in session seconds, ``None`` where the parts are not known together.
    ``account`` is the account on that GPU, ``None`` for the CPU. ``held`` has the kinds on each logical device.
    """

    gpu: int | None
    t: float | None
    slices: tuple[MemorySlice, ...]
    account: Account | None
    held: tuple[Holdings, ...]
    peak: int | None
    limit: int | None

    @property
    def size(self) -> int:
        return sum(slice.size for slice in self.slices)


def breakdowns(state: State, pid: int) -> Iterator[Breakdown]:
    """Yield a breakdown for each GPU on which process *pid* has a pool, then one for each of its pools on the CPU."""
    # Without a pool, other views show the total of an account; its purpose is not known.
    yield from (breakdown_of(state, account) for account in accounts(state, pid) if account.every_pool)
    yield from _cpu_pools(state, pid, {held.device: held for held in holdings(state, pid)})


def breakdown_of(state: State, account: Account) -> Breakdown:
    """Return *account* of a process as a breakdown."""
    found = {held.device: held for held in holdings(state, account.pid)}
    held = tuple(found[pool.device] for pool in account.pools if pool.device in found)
    hooked, pools = hooked_of(state, account.pid), account.pools or account.frameworks
    limits = [limit_of(hooked, pool.device) if hooked and account.pools else pool.limit for pool in pools]
    peak, limit = sum_known(pool.peak for pool in pools), sum_known(limits)
    return Breakdown(account.gpu, account.t, tuple(_slices(account, held)), account, held, peak, limit)


def _slices(account: Account, held: Sequence[Holdings]) -> Iterator[MemorySlice]:
    if account.context is not None:
        yield MemorySlice(MemoryPart.CONTEXT, account.context, account.context_exact)
    if account.pools:
        yield from in_use_slices(account.in_use, held)
        if account.cached is not None:
            yield MemorySlice(MemoryPart.CACHED, account.cached)
    for framework, size in account.by_framework.items():
        yield MemorySlice(MemoryPart(framework.title), size)
    if account.outside is not None:
        yield MemorySlice(MemoryPart.OUTSIDE, account.outside, account.context_exact)
    elif account.rest is not None:
        yield MemorySlice(MemoryPart.CACHED_AND_OUTSIDE, account.rest, exact=False)


def in_use_slices(in_use: int, held: Sequence[Holdings]) -> Iterator[MemorySlice]:
    """Yield slices of *in_use* bytes: one for each kind if the kinds do not exceed them, else one slice."""
    sizes = {part: sum(dict(one.kinds).get(part.value, 0) for one in held) for part in KINDS}
    rest = in_use - sum(sizes.values())
    if not held or rest < 0:
        yield MemorySlice(MemoryPart.IN_USE, in_use)
        return
    yield from (MemorySlice(part, size) for part, size in sizes.items() if size)
    yield MemorySlice(MemoryPart.OTHER_IN_USE, rest)


def _cpu_pools(state: State, pid: int, found: dict[str, Holdings]) -> Iterator[Breakdown]:
    process = state.processes.get(pid)
    for name, reading in process.hooked.allocators.items() if process and process.hooked else ():
        if not is_cpu(name) or reading.in_use is None:
            continue
        held = (found[name],) if name in found else ()
        slices = [*in_use_slices(reading.in_use, held)]
        if (cached := cached_of(reading.pool, reading.in_use)) is not None:
            slices.append(MemorySlice(MemoryPart.CACHED, cached))
        yield Breakdown(None, reading.t, tuple(slices), None, held, reading.peak, reading.limit)
