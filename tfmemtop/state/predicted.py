"""Views of what other settings would do to a pool, together with what was measured of it."""

from collections.abc import Iterator
from enum import Enum

import msgspec

from tfmemtop.events import Allocator, Replayed, SettingReplayed
from tfmemtop.events.machine import is_gpu, is_pinned
from tfmemtop.state.account import USUAL_CONTEXT, USUAL_LIBRARIES, accounts
from tfmemtop.state.figures import figures
from tfmemtop.state.lookup import device_of, of_run
from tfmemtop.state.model import Hooked, RunState, State
from tfmemtop.units import MIB


class Later(Enum):
    """What is known of a run beyond its allocations that were replayed."""

    NO_MORE = "no_more"  # it needed no more memory, as far as is known
    MORE = "more"  # it needed more memory
    RISING = "rising"  # it needed more and more memory
    RAN_OUT = "ran_out"  # it ran out of memory
    FAILED = "failed"  # it failed, perhaps because memory was missing


class Ends(msgspec.Struct, frozen=True):
    """What is known of the smallest limit, in bytes, whole MiB: below ``at_least`` no run fits. ``surely`` is predicted
    to be enough; ``None`` for a run that needed more than was replayed, or failed, or whose memory kept rising, and
    where allocations are lost. ``worked`` is then the pool that a run which did not fail reached: with it the run
    passed, or went on. It is ``None`` if the run had the other setting of growth. ``failed`` is the limit under which
    the run ran out of memory. ``alike`` is the smallest limit with the same algorithms, ``None`` where ``surely`` is.
    """

    at_least: int
    surely: int | None
    worked: int | None = None
    failed: int | None = None
    alike: int | None = None


class Pace(msgspec.Struct, frozen=True):
    """How fast a run of the session was: ``unit``, such as steps, a second, with its growth and limit in bytes.

    ``limit`` is ``None`` if none was chosen; ``effective`` is the one that the pool had.
    """

    run: int
    growth: bool
    limit: int | None
    effective: int | None
    unit: str
    a_second: float
    newest: bool = False


class Predicted(msgspec.Struct, frozen=True):
    """The replays of one pool; ``measured`` is the newest reading of its allocator.

    ``beside`` bytes of the process's memory on that GPU do not belong to a pool: its context and outside, ``None`` for
    the CPU. They are measured figures with ``measured_beside``, else the usual ones. ``gpu`` is the GPU's NVML
    index. ``failed`` is the way in which the run failed, if it did, or that its memory kept rising. ``paces`` are those
    of the session's runs.
    """

    pid: int
    replayed: Replayed
    measured: Allocator | None
    beside: int | None
    measured_beside: bool
    gpu: int | None = None
    failed: Later = Later.NO_MORE
    paces: tuple[Pace, ...] = ()

    @property
    def device(self) -> str:
        return self.replayed.device

    @property
    def share(self) -> float | None:
        """The share, from 0 to 1, of all allocations of the pool so far that were replayed; ``None`` if not known."""
        all_of_them = self.measured.allocations if self.measured else None
        return min(1.0, self.replayed.allocations / all_of_them) if all_of_them else None

    @property
    def later(self) -> Later:
        """What became of the run after the allocations that were replayed."""
        now = self.measured
        if self.failed is Later.NO_MORE and now is not None and self.replayed.outgrown(now.peak or 0, self.pool):
            return Later.MORE
        return self.failed

    @property
    def outgrown(self) -> bool:
        """Whether the replay does not show which limit is enough: the run needed more, or ever more, or has failed."""
        return self.later is not Later.NO_MORE

    @property
    def _risen(self) -> int:
        """By how much, in bytes, whole MiB, the peak has risen since the allocations that were replayed."""
        present, now = self.replayed.present, self.measured
        if present is None or now is None or not present.in_order.fits:
            return 0
        return max(0, -(-((now.peak or 0) - present.in_order.peak) // MIB) * MIB)

    @property
    def pool(self) -> int | None:
        """The largest size of the pool that was measured, in bytes."""
        now = self.measured
        return None if now is None else now.pool if now.peak_pool is None else now.peak_pool

    @property
    def rows(self) -> list[SettingReplayed]:
        """The settings: the present one first, then those with growth on, then off, each from the smallest limit up.

        If the run has outgrown the replay, only those for which :meth:`fits` is known, and the present one.
        """
        present = self.replayed.present
        others = [row for row in self.replayed.rows if present is None or not _alike(row, present)]
        others = [row for row in others if not self.outgrown or self.fits(row) is not None]
        others.sort(key=lambda row: (not row.growth, row.collects is not self.collects, row.limit or 1 << 62))
        return others if present is None else [present, *others]

    def fits(self, row: SettingReplayed) -> bool | None:
        """Return whether the run fits with the setting of *row*; ``None`` if some runs would fail, or if not known."""
        if self.is_as_measured(row):
            return None if self.later is Later.RISING else True  # whatever the replay says
        if row.fits and self.replayed.lost:
            return None  # with all of its allocations it may need more
        if row.fits is False or not self.outgrown:
            ends = self.ends(row.growth) if row.fits else None
            return None if ends and ends.surely and row.limit and row.limit < ends.surely else row.fits
        return False if row is self.replayed.present and self.later is Later.RAN_OUT else None

    def is_as_measured(self, row: SettingReplayed) -> bool:
        """Return whether the run has worked with the setting of *row* so far, or takes the same memory with it."""
        present = self.replayed.present
        if present is None or self.later in (Later.RAN_OUT, Later.FAILED):
            return False
        larger = row.limit is None or (self.pool is not None and row.limit >= self.pool)
        return row is present or (row.growth and present.growth and row.collects is present.collects and larger)

    def pace(self, row: SettingReplayed) -> Pace | None:
        """Return how fast the newest run with the setting of *row* was, if there was one."""
        alike = (
            pace
            for pace in reversed(self.paces)
            if (pace.newest and row is self.replayed.present)
            or (pace.growth is row.growth and row.limit in (pace.limit, pace.effective))
        )
        return next(alike, None) if row.collects is self.collects else None

    @property
    def collects(self) -> bool:
        """Whether BFC's garbage collection is on in the present setting."""
        return self.replayed.present.collects if self.replayed.present else is_gpu(self.device)

    def total(self, pool: int) -> int | None:
        """Return the whole memory of the process with a pool of *pool* bytes, in bytes; ``None`` for the CPU."""
        return None if self.beside is None else pool + self.beside

    def ends(self, growth: bool) -> Ends | None:
        """Return what is known of the smallest limit with growth on, or off; ``None`` if it was not replayed."""
        least, present = self.replayed.least(growth), self.replayed.present
        if least is None:
            return None
        if not self.outgrown and not self.replayed.lost:
            more = self._risen
            return Ends(least.at_least, least.surely + more, alike=(least.alike or least.surely) + more)
        alike = present is not None and present.growth is growth
        reached = self.pool if self.later in (Later.MORE, Later.NO_MORE) and alike else None
        failed = present.limit if self.later is Later.RAN_OUT and present and alike else None
        return Ends(least.at_least, None, None if reached is None else -(-reached // MIB) * MIB, failed)


def predicted(state: State, device: str | None = None) -> list[Predicted]:
    """Return a view of each pool that was replayed, or only of *device*, the highest requested peak first."""
    found = [
        _view(state, pid, process.hooked, windows.replayed)
        for pid, process in state.processes.items()
        if process.hooked
        for name, windows in process.hooked.windows.items()
        if windows.replayed is not None and device in (None, name) and not is_pinned(name)
    ]
    return sorted(found, key=lambda view: view.replayed.requested, reverse=True)


def _alike(one: SettingReplayed, other: SettingReplayed) -> bool:
    return (one.growth, one.collects, one.limit) == (other.growth, other.collects, other.limit)


def _view(state: State, pid: int, hooked: Hooked, replayed: Replayed) -> Predicted:
    gpu = device_of(state, pid, replayed.device)
    beside, measured = None, False
    if is_gpu(replayed.device):
        index = gpu.info.index if gpu else None
        read = _beside(state, pid, index)
        beside, measured = (USUAL_CONTEXT + USUAL_LIBRARIES, False) if read is None else (read, True)
    index = gpu.info.index if gpu else None
    return Predicted(
        pid=pid,
        replayed=replayed,
        measured=hooked.allocators.get(replayed.device),
        beside=beside,
        measured_beside=measured,
        gpu=index,
        failed=_failed(state, pid, hooked, replayed.device),
        paces=tuple(_paces(state, replayed.device)) if of_run(state, pid) else (),
    )


def _paces(state: State, device: str) -> Iterator[Pace]:
    for run in state.runs:
        told, effective = figures(run, state.now), run.effective.get(device)
        if effective is not None and effective.growth is not None and told.steps_per_s is not None:
            chosen = run.settings.memory_limit is not None or run.settings.cpu_pool is not None
            limit = effective.limit if chosen else None
            yield Pace(run.run, effective.growth, limit, effective.limit, told.unit, told.steps_per_s, run is state.run)


def _failed(state: State, pid: int, hooked: Hooked, device: str) -> Later:
    """Return the way in which the run failed, if missing memory of *device* may be the cause."""
    ran_out = {event.device for event in hooked.out_of_memory}
    run, reading = state.run if of_run(state, pid) else None, hooked.allocators.get(device)
    if device in ran_out or (run and reading and reading.allocator in run.crashed_on):
        return Later.RAN_OUT
    failed = run is not None and run.failed
    return Later.FAILED if failed or None in ran_out else Later.NO_MORE


def _beside(state: State, pid: int, index: int | None) -> int | None:
    """Return context and outside of a process on a GPU: the present sum, or that at the run's highest total."""
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
