"""The fold of what is known of memory: readings, maps of pools, histories, recorded allocations."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, TypeVar

from tfmemtop import events
from tfmemtop.events.machine import is_cpu, is_pinned
from tfmemtop.state.history import Trend
from tfmemtop.state.lookup import (
    allocators_of,
    card_of,
    card_pools,
    cpu_pool_readings,
    device_of,
    frameworks_of,
    hooked_of,
    living_hooked,
    of_run,
    pool_use,
    process_total,
    surroundings,
)
from tfmemtop.state.model import (
    CLUSTERS_KEPT,
    LINES_KEPT,
    WAIT_SEEN_S,
    WINDOWS_OF_PHASES_KEPT,
    Context,
    CpuPool,
    DeviceState,
    Hooked,
    Measured,
    Pool,
    PoolWindows,
    State,
)
from tfmemtop.units import MIB

E = TypeVar("E", bound=events.Event)
HANDLERS: dict[type[events.Event], Callable[[State, Any], None]] = {}


def folds(kind: type[E]) -> Callable[[Callable[[State, E], None]], Callable[[State, E], None]]:
    """Make a function the handler of a class of events: it stores each event of the class in the state."""

    def register(handler: Callable[[State, E], None]) -> Callable[[State, E], None]:
        HANDLERS[kind] = handler
        return handler

    return register


NOTHING_COMPUTED = 4096
"""Bytes: a peak above this means that an operation has run.

Once TensorFlow has made its devices, its own scratch is in use: 1792 bytes on an H200. Even the smallest operations
load kernels and make cuBLAS allocate its workspace. Both are outside the pool, as the context is.
"""

STALE_S = 2.0
"""Seconds. The hook was held up, as by a library that is being loaded, if its reading of a pool is older."""

FIRST_REGION = 2 * MIB
"""Bytes that a growing pool of BFC takes first, for that scratch. They are known without the probe."""


def total_read(hooked: Hooked, gpu: int, now: Measured, made: bool) -> None:
    """Store NVML's total of a process that lives, on *gpu*, with the newest readings of its allocators.

    *made* is whether TensorFlow has made its devices.
    """
    context = hooked.contexts.setdefault(gpu, Context())
    known = now.readings or now.frameworks
    if known and now.is_possible:
        context.measured = now
    if not made:
        return
    context.unconfirmed = now
    rest = now.rest if known else None
    held_up = any(now.t - one.t > STALE_S for one in now.readings.values())
    if rest is None or rest < 0 or held_up:
        return
    # The pools were read a little earlier, and pools mostly grow: the rest is rarely too small.
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
    total = context.unconfirmed
    if any(reading.t <= total.t for reading in readings):
        return
    context.unconfirmed = None
    peaks = [reading.peak for reading in readings]
    pools = [_context_pool(reading, hooked.effective.get(reading.device)) for reading in readings]
    if None in peaks or None in pools or max(peak or 0 for peak in peaks) > NOTHING_COMPUTED:
        return
    rest = total.total - sum(pool or 0 for pool in pools) - total.of_frameworks
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
    hooked = hooked_of(state, event.pid)
    if hooked is None:
        return
    hooked.allocators[event.device] = event
    if is_pinned(event.device):
        return
    # A peak that the native sampler found between two readings goes into the history just before the reading itself.
    spike = max(0, (event.high or 0) - (event.in_use or 0))
    if is_cpu(event.device):
        if state.cpu_pool is None:
            state.cpu_pool = CpuPool()
        readings = cpu_pool_readings(state)
        in_use, pool = pool_use(readings)
        for size in _course(in_use, spike):
            state.cpu_pool.history.add(event.t, (size, max(size, pool or 0)))
        _remember_run(state, "cpu", readings, 0, spike)
    elif device := device_of(state, event.pid, event.device):
        _remember_device(state, device, spike)
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


@folds(events.Framework)
def _framework(state: State, event: events.Framework) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.frameworks[event.device] = event
        hooked.began.setdefault(event.device, event.t)
        if device := card_of(state, event):
            _remember_device(state, device)


@folds(events.PoolGrowth)
def _pool_growth(state: State, event: events.PoolGrowth) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.pools.setdefault(event.device, Pool()).growths.append(event)


@folds(events.MemoryMap)
def _memory_map(state: State, event: events.MemoryMap) -> None:
    if hooked := hooked_of(state, event.pid):
        pool = hooked.pools.setdefault(event.device, Pool())
        if event.moment is events.MapMoment.OUT_OF_MEMORY:
            if pool.exhausted is None or event.t - pool.exhausted.t > WAIT_SEEN_S:
                pool.short_since, pool.short_among = event.t, surroundings(state, hooked)
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
        readings = {each.device: each for each in allocators_of(state, pid, hooked, device)}
        frameworks = tuple(frameworks_of(state, hooked, device))
        # While TensorFlow makes its devices, the context still grows, so it is not read.
        made = bool(hooked.effective) or (hooked.initialised is not None and not hooked.initialised.error)
        now = Measured(reading.t, share.used, reading.used, readings, frameworks)
        total_read(hooked, device.info.index, now, made or bool(frameworks))


def _course(in_use: int, spike: int) -> Sequence[int]:
    """Return the bytes that were in use one after the other: first *spike* bytes more than now, if there was one."""
    return (in_use + spike, in_use) if spike else (in_use,)


def _remember_device(state: State, device: DeviceState, spike: int = 0) -> None:
    readings, others = card_pools(state, device)
    total, used = process_total(state, device) or 0, (device.reading.used or 0) if device.reading else 0
    in_use, pool = pool_use(readings)
    for size in _course(in_use, spike):
        ends = list(accumulate(others, initial=max(size, pool or 0)))
        # NVML is read less often than the allocators: an older total must not be below a newer pool.
        mine_end = max(ends[-1], total)
        device.history.add(state.now, (size, *ends, mine_end, max(mine_end, used)))
    _remember_run(state, f"GPU {device.info.index}", readings, total, spike)


def _remember_run(
    state: State, place: str, readings: Sequence[events.Allocator | events.Framework], total: int, spike: int
) -> None:
    """Store the newest run's own part of one GPU or the CPU pool, and add it to the run's curve.

    *readings* are those of all processes there, *total* is the bytes of the run's processes by NVML.
    """
    if (run := state.run) and run.going:
        ours = [reading for reading in readings if of_run(state, reading.pid)]
        in_use, pool = pool_use(ours)
        run.limit_on[place] = max(sum(one.limit or 0 for one in ours), run.limit_on.get(place, 0))
        highest, now = ((size, max(size, pool or 0), max(size, pool or 0, total)) for size in (in_use + spike, in_use))
        run.held[place] = highest
        run.curve.add(state.now - run.started, tuple(map(max, zip(*run.held.values(), strict=True))))
        run.held[place] = now


@folds(events.ScriptPhase)
def _script_phase(state: State, event: events.ScriptPhase) -> None:
    run = state.run
    if run is None or not of_run(state, event.pid) or not event.peaks:
        return
    phases = run.phases
    phases[event.pid, event.number] = event
    if len(phases) > events.PHASES_KEPT:  # of the most frequent name, the one with the lowest peak is dropped
        names = Counter(phase.name for phase in phases.values())
        others = phases.keys() - {(event.pid, event.number)}  # the newest shows whether the script is in one now
        del phases[min(others, key=lambda key: (-names[phases[key].name], max(phases[key].peaks.values()), key))]


# Recorded allocations: windows, traces, the script's lines, and XLA's reports.


@folds(events.Holders)
def _holders(state: State, event: events.Holders) -> None:
    if hooked := hooked_of(state, event.pid):
        windows = hooked.windows.setdefault(event.device, PoolWindows())
        if event.phase:
            if event.phase in windows.of_phases or len(windows.of_phases) < WINDOWS_OF_PHASES_KEPT:
                windows.of_phases[event.phase] = event
            return
        if windows.first is None:
            windows.first = event
        if not event.is_missing and (windows.highest is None or event.peak >= windows.highest.peak):
            windows.highest = event
            hooked.at_peak = [hooked.census] if hooked.census else []
        windows.newest.append(event)


@folds(events.Trace)
def _trace(state: State, event: events.Trace) -> None:
    if hooked := hooked_of(state, event.pid):
        parts = hooked.windows.setdefault(event.device, PoolWindows()).trace
        if event.part == 0:
            parts.clear()
        parts.append(event)


@folds(events.Replayed)
def _replayed(state: State, event: events.Replayed) -> None:
    if hooked := hooked_of(state, event.pid):
        windows = hooked.windows.setdefault(event.device, PoolWindows())
        if event.is_missing and windows.replayed is not None and not windows.replayed.is_missing:
            return  # of a trace that has gone on since: what is known of its beginning says more
        windows.replayed = event
        if state.run and of_run(state, event.pid):
            state.run.replayed[event.device] = event  # kept to be compared with failures of later runs of the command


@folds(events.OperationLines)
def _operation_lines(state: State, event: events.OperationLines) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.lines.update((line.operation, line) for line in event.lines)
        while len(hooked.lines) > LINES_KEPT:
            del hooked.lines[next(iter(hooked.lines))]


@folds(events.XlaCluster)
def _xla_cluster(state: State, event: events.XlaCluster) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.clusters.pop(event.module, None)
        hooked.clusters[event.module] = event
        while len(hooked.clusters) > CLUSTERS_KEPT:
            del hooked.clusters[next(iter(hooked.clusters))]
