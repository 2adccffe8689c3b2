"""Views of what other settings would do to a pool, beside what was measured of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from tfmemtop.events import Allocator, Replayed, SettingReplayed, SmallestLimits
from tfmemtop.events.device_names import is_gpu, is_pinned
from tfmemtop.state.account import USUAL_CONTEXT, USUAL_LIBRARIES, accounts
from tfmemtop.state.lookup import device_of
from tfmemtop.state.model import Hooked, RunState, State

HIGHER_LATER = 1.05
"""A pool whose peak has risen by more since its allocations were recorded needs what the replay does not know of."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """The replays of one pool; ``measured`` is the newest reading of its allocator.

    ``beside`` bytes of the process's memory on that GPU are no pool: its context and what lies outside, as they were
    read, or without ``measured_beside`` as they are usually. ``None`` for the CPU. ``whole_card`` is the GPU's memory,
    ``gpu`` its NVML index.
    """

    pid: int
    replayed: Replayed
    measured: Allocator | None
    beside: int | None
    measured_beside: bool
    whole_card: int | None
    gpu: int | None = None

    @property
    def device(self) -> str:
        return self.replayed.device

    @property
    def share(self) -> float | None:
        """Of all allocations of the pool so far, those that were replayed; ``None`` where that is not known."""
        all_of_them = self.measured.allocations if self.measured else None
        return min(1.0, self.replayed.allocations / all_of_them) if all_of_them else None

    @property
    def outgrown(self) -> bool:
        """Whether the pool has needed more since than what was replayed did."""
        now, present = self.measured, self.replayed.present
        if now is None or present is None or not present.in_order.fits:
            return False
        pool = now.peak_pool if now.peak_pool is not None else now.pool
        return (now.peak or 0) > present.in_order.peak * HIGHER_LATER or (pool or 0) > present.in_order.peak_pool

    @property
    def rows(self) -> list[SettingReplayed]:
        """The present setting first, then those with growth on, then off, each from the smallest limit upward."""
        present = self.replayed.present
        others = [row for row in self.replayed.rows if present is None or not _alike(row, present)]
        others.sort(key=lambda row: (not row.growth, row.collects is not self.collects, row.limit or 1 << 62))
        return others if present is None else [present, *others]

    @property
    def collects(self) -> bool:
        """Whether BFC's garbage collection is on in the present setting."""
        return self.replayed.present.collects if self.replayed.present else is_gpu(self.device)

    def total(self, pool: int) -> int | None:
        """What the process would have in all with that pool, in bytes."""
        return None if self.beside is None else pool + self.beside

    def least(self, growth: bool) -> SmallestLimits | None:
        """The smallest limits with that growth."""
        return self.replayed.least(growth)


def predicted(state: State, device: str | None = None) -> list[Predicted]:
    """Of the pools of the newest run that were replayed, or of *device* alone; that with the highest peak first."""
    found = [
        _view(state, pid, process.hooked, windows.replayed)
        for pid, process in state.processes.items()
        if process.hooked
        for name, windows in process.hooked.windows.items()
        if windows.replayed is not None and device in (None, name) and not is_pinned(name)
    ]
    return sorted(found, key=lambda view: view.replayed.requested, reverse=True)


@dataclass(frozen=True, slots=True)
class Together:
    """All logical devices of a process on one GPU, each under a limit of its own; ``limit`` and ``pool`` are the sums.

    It ``fits`` only if all do; ``None`` where that depends on how threads take turns. ``limit`` is ``None`` if a device
    has none, ``total`` if the process's other memory is not known. ``present`` if it is the setting that they have.
    """

    devices: tuple[str, ...]
    growth: bool
    limit: int | None
    fits: bool | None
    pool: int
    total: int | None
    present: bool = False


def together(views: Sequence[Predicted]) -> list[Together]:
    """For each GPU with several logical devices of a process: the present setting, and the limits that are enough."""
    shared: dict[tuple[int, int], list[Predicted]] = {}
    for view in views:
        if view.gpu is not None:
            shared.setdefault((view.pid, view.gpu), []).append(view)
    found = []
    for devices in shared.values():
        if len(devices) > 1:
            devices.sort(key=lambda view: view.device)
            rows = [[view.replayed.present for view in devices]]
            rows += [[_surely(view, growth) for view in devices] for growth in (True, False)]
            found += [
                _sum(devices, [row for row in each if row], number == 0)
                for number, each in enumerate(rows)
                if all(each)
            ]
    return found


def _surely(view: Predicted, growth: bool) -> SettingReplayed | None:
    """The row of the limit that is surely enough."""
    least = view.least(growth)
    rows = [row for row in view.rows if least and (row.growth, row.limit) == (growth, least.surely)]
    return next((row for row in rows if row.collects is view.collects), None)


def _sum(devices: Sequence[Predicted], rows: Sequence[SettingReplayed], present: bool) -> Together:
    limits = [row.limit for row in rows]
    fits = [row.fits for row in rows]
    pool = sum(row.outcome.peak_pool for row in rows)
    return Together(
        devices=tuple(view.device for view in devices),
        growth=rows[0].growth,
        limit=None if None in limits else sum(limit or 0 for limit in limits),
        fits=False if False in fits else None if None in fits else True,
        pool=pool,
        total=devices[0].total(pool),
        present=present,
    )


def _alike(one: SettingReplayed, other: SettingReplayed) -> bool:
    return (one.growth, one.collects, one.limit) == (other.growth, other.collects, other.limit)


def _view(state: State, pid: int, hooked: Hooked, replayed: Replayed) -> Predicted:
    gpu = device_of(state, pid, replayed.device)
    beside, measured = None, False
    if is_gpu(replayed.device):
        index = gpu.info.index if gpu else None
        read = _beside(state, pid, index)
        beside, measured = (USUAL_CONTEXT + USUAL_LIBRARIES, False) if read is None else (read, True)
    whole = gpu.info.total if gpu else None
    index = gpu.info.index if gpu else None
    return Predicted(pid, replayed, hooked.allocators.get(replayed.device), beside, measured, whole, index)


def _beside(state: State, pid: int, index: int | None) -> int | None:
    """Context and outside of a process on a GPU: as it stands, or at the highest total of a run that has ended."""
    if index is None:
        return None
    for account in accounts(state, pid):
        if account.gpu == index and account.context is not None and account.outside is not None:
            return account.context + account.outside
    run = state.run
    return _at_the_peak(state, run, pid, index) if run else None


def _at_the_peak(state: State, run: RunState, pid: int, index: int) -> int | None:
    total = run.totals.get(index)
    pools = [
        pool
        for name, pool in run.pools.items()
        if (device := device_of(state, pid, name)) is not None and device.info.index == index
    ]
    return total - sum(pools) if total is not None and pools and total > sum(pools) else None
