"""The fold of memory figures: readings of the driver and of allocators, maps of pools, and their histories."""

from collections.abc import Callable

from tfmemtop import events
from tfmemtop.events import Level, NoticeKind
from tfmemtop.events.device_names import is_cpu, is_pinned
from tfmemtop.state.handlers import folds
from tfmemtop.state.lookup import (
    allocators_of,
    allocators_on,
    cpu_pool_readings,
    device_of,
    hooked_of,
    living_hooked,
    of_run,
    pool_use,
    process_total,
)
from tfmemtop.state.model import (
    DEVICES_KEPT,
    NOTICES_KEPT,
    PROCESSES_KEPT,
    Context,
    CpuPool,
    DeviceState,
    Hooked,
    Pool,
    State,
)
from tfmemtop.state.sums import Sums
from tfmemtop.state.trend import Trend
from tfmemtop.units import MIB


def add_notice(
    state: State,
    key: str,
    kind: NoticeKind,
    level: Level = Level.WARNING,
    *,
    detail: str = "",
    about: int | None = None,
    count: int | None = None,
) -> None:
    """Add a notice to the state, unless the state has too many and none with this *key*."""
    if key not in state.notices and len(state.notices) > NOTICES_KEPT:
        return
    notice = events.Notice(t=state.now, key=key, level=level, kind=kind, detail=detail, about=about, count=count)
    state.notices[key] = notice


def with_device(state: State, pid: int, device: str) -> Hooked | None:
    """Return the hook's data of process *pid* and note *device* in it.

    The number of devices of a process is bounded. Return ``None`` if *device* would exceed it, or if the hook is not in
    the process.
    """
    hooked = hooked_of(state, pid)
    if hooked is None or device in hooked.devices:
        return hooked
    if len(hooked.devices) < DEVICES_KEPT:
        hooked.devices.add(device)
        return hooked
    add_notice(state, "left-out-devices", NoticeKind.DEVICES_LEFT_OUT, about=pid, count=DEVICES_KEPT)
    return None


def room_for(state: State, pid: int) -> bool:
    if pid in state.processes or len(state.processes) < PROCESSES_KEPT:
        return True
    add_notice(state, "left-out-processes", NoticeKind.PROCESSES_LEFT_OUT, count=PROCESSES_KEPT)
    return False


def note_device(state: State, pid: int, logical: str) -> None:
    """Note on its GPU that process *pid* has reported the logical device *logical*."""
    if device := device_of(state, pid, logical):
        device.logical.setdefault(pid, set()).add(logical)


def note_all(state: State) -> None:
    """Note all logical devices again, because the GPUs have changed."""
    for pid, process in state.processes.items():
        if process.hooked:
            for logical in {*process.hooked.effective, *process.hooked.allocators}:
                note_device(state, pid, logical)


def forget_process(state: State, pid: int) -> None:
    """Remove process *pid* from the state."""
    del state.processes[pid]
    state.shape += 1
    for device in state.devices.values():
        device.logical.pop(pid, None)


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
    pools = [_context_pool(reading, hooked.effective.get(reading.device)) for reading in readings]
    if None in peaks or None in pools or max(peak or 0 for peak in peaks) > NOTHING_COMPUTED:
        return
    rest = used - sum(pool or 0 for pool in pools)
    if rest >= 0:
        context.size = min(rest, context.size) if context.exact and context.size is not None else rest
        context.exact = True


def _context_pool(reading: events.Allocator, effective: events.Effective | None) -> int | None:
    if reading.pool is None and effective and effective.growth and effective.allocator == "bfc":
        return FIRST_REGION if reading.peak else 0
    return reading.pool


@folds(events.DeviceReading)
def _device_reading(state: State, event: events.DeviceReading) -> None:
    device = state.devices.get(event.index)
    if device is None:
        return
    device.reading = event
    device.by_pid = {process.pid: process for process in event.processes}
    _remember_device(state, device)
    if event.utilisation is not None:
        device.busy.append((event.t, event.utilisation))
    _remember_contexts(state, device, event)
    if (run := state.run) and run.going:
        total = process_total(state, device)
        if event.used is not None and event.free is not None and not run.peak_process_total:
            if total == 0:
                run.before[event.index] = event.used, event.free
            elif total is None:
                # The owners of the memory are not known: only the first reading is surely from before the run's own.
                run.before.setdefault(event.index, (event.used, event.free))
        if total is not None:
            # The highest on any single GPU, not the sum: each card has a limit of its own.
            run.peak_process_total = max(run.peak_process_total or 0, total)
            run.totals[event.index] = max(run.totals.get(event.index, 0), total)
        elif run.peak_process_total == 0:
            run.peak_process_total = None  # the 0 only meant that no process had been found


@folds(events.Allocator)
def _allocator(state: State, event: events.Allocator) -> None:
    hooked = with_device(state, event.pid, event.device)
    if hooked is None:
        return
    before = hooked.allocators.get(event.device)
    hooked.allocators[event.device] = event
    if before is None:
        note_device(state, event.pid, event.device)
    if is_pinned(event.device):
        return
    if before is None or hooked.ended:
        state.shape += 1
    # A peak that the native sampler found between two readings goes into the history just before the reading itself.
    spike = max(0, (event.high or 0) - (event.in_use or 0))
    if is_cpu(event.device):
        if state.cpu_pool is None:
            state.cpu_pool = CpuPool()
        _replace(state, state.cpu_pool, before, event)
        sums = _cpu_sums(state, state.cpu_pool)
        in_use, pool = sums.all.in_use, sums.all.pool
        for highest in [in_use + spike, in_use] if spike else [in_use]:
            state.cpu_pool.history.add(event.t, (highest, max(highest, pool or 0)))
        _remember_run(state, "cpu", sums, spike)
    elif device := device_of(state, event.pid, event.device):
        _replace(state, device, before, event)
        if spike:
            _remember_device(state, device, spike)
        _remember_device(state, device)
        pools_read(hooked, device.info.index, allocators_of(state, event.pid, hooked, device))
    run = state.run
    if event.in_use is not None:
        trend = hooked.trends.setdefault(event.device, Trend())
        trend.add(event.t, event.in_use, event.high or event.in_use, event.peak)
    if run and run.going and (known := [size for size in (event.in_use, event.peak) if size is not None]):
        run.peaks[event.device] = max(*known, run.peaks.get(event.device, 0))
    if run and run.going and event.pool is not None:
        run.pools[event.device] = max(run.pools.get(event.device, 0), event.peak_pool or 0, event.pool)
    if run and run.going and event.limit is not None:
        run.limits[event.device] = event.limit


def _pool(state: State, event: events.PoolGrowth | events.MemoryMap) -> Pool | None:
    hooked = with_device(state, event.pid, event.device)
    return hooked.pools.setdefault(event.device, Pool()) if hooked else None


@folds(events.PoolGrowth)
def _pool_growth(state: State, event: events.PoolGrowth) -> None:
    if pool := _pool(state, event):
        pool.growths.append(event)


@folds(events.MemoryMap)
def _memory_map(state: State, event: events.MemoryMap) -> None:
    if pool := _pool(state, event):
        if event.moment is events.MapMoment.OUT_OF_MEMORY:
            pool.exhausted = event
        elif event.region is not None:
            pool.zoom = event
        else:
            pool.map = event
            if (run := state.run) and run.going and not event.is_missing:
                maps = [
                    pool.map
                    for hooked in living_hooked(state)
                    for name, pool in hooked.pools.items()
                    if pool.map and not pool.map.is_missing and not is_pinned(name)
                ]
                if maps:
                    run.fragmentation = max(maps, key=lambda each: each.pool).fragmentation


def _remember_contexts(state: State, device: DeviceState, reading: events.DeviceReading) -> None:
    for pid, share in device.by_pid.items():
        hooked = hooked_of(state, pid)
        if hooked is None or hooked.ended or share.used is None:
            continue
        # While TensorFlow makes its devices, the context still grows, so it is not read.
        if hooked.effective or (hooked.initialised and not hooked.initialised.error):
            readings = allocators_of(state, pid, hooked, device)
            pool = pool_use(readings)[1] if readings else None
            total_read(hooked, device.info.index, reading, share.used, pool)


def _remember_device(state: State, device: DeviceState, spike: int = 0) -> None:
    sums = _device_sums(state, device)
    in_use = sums.all.in_use + spike
    pool_end = max(in_use, sums.all.pool or 0)
    # NVML is read less often than the allocators: an older total must not be below a newer pool.
    mine_end = max(pool_end, sums.total)
    used = device.reading.used if device.reading else None
    device.history.add(state.now, (in_use, pool_end, mine_end, max(mine_end, used or 0)))
    _remember_run(state, f"GPU {device.info.index}", sums, spike)


def _replace(
    state: State, place: DeviceState | CpuPool, before: events.Allocator | None, now: events.Allocator
) -> None:
    """Update the sums of *place* by the new reading, if no process has come or gone."""
    if before is not None and place.sums is not None and place.sums.shape == state.shape:
        ours = of_run(state, now.pid)
        place.sums.add(before, ours, -1)
        place.sums.add(now, ours)


def _sums(state: State, kept: Sums | None, readings: Callable[[], list[events.Allocator]]) -> Sums:
    """Return *kept* if these sums are still valid, else the sums of *readings*."""
    if kept is not None and kept.shape == state.shape:
        return kept
    return Sums.of(state.shape, ((reading, of_run(state, reading.pid)) for reading in readings()))


def _cpu_sums(state: State, pool: CpuPool) -> Sums:
    pool.sums = _sums(state, pool.sums, lambda: cpu_pool_readings(state))
    return pool.sums


def _device_sums(state: State, device: DeviceState) -> Sums:
    sums = _sums(state, device.sums, lambda: allocators_on(state, device))
    if sums is not device.sums or sums.reading is not device.reading:
        sums.reading, sums.total = device.reading, process_total(state, device) or 0
        device.sums = sums
    return sums


def _remember_run(state: State, place: str, sums: Sums, spike: int) -> None:
    """Store the newest run's own part of the *sums* of one GPU or the CPU pool, and add it to the run's curve."""
    if (run := state.run) and run.going:
        in_use, pool = sums.run.in_use + spike, sums.run.pool
        run.held[place] = in_use, max(in_use, pool or 0), max(in_use, pool or 0, sums.total)
        run.limit_on[place] = max(sums.run.limit, run.limit_on.get(place, 0))
        run.curve.add(state.now - run.started, tuple(map(max, zip(*run.held.values(), strict=True))))
