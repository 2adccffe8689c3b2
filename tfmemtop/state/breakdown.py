"""A process's memory on one device as slices that add up: its account, with the memory in use by kind. Pure."""

from collections.abc import Iterator, Sequence
from enum import Enum

import msgspec

from tfmemtop.events.machine import is_cpu
from tfmemtop.state.account import Account, accounts
from tfmemtop.state.holdings import Holdings, holdings
from tfmemtop.state.lookup import cached_of, sum_known
from tfmemtop.state.model import State


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
    pools = account.pools or account.frameworks
    peak, limit = sum_known(pool.peak for pool in pools), sum_known(pool.limit for pool in pools)
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
