"""Views of the state: they compute the figures that each panel shows, so that the screen does no arithmetic."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from tfmemtop import events
from tfmemtop.events.machine import is_cpu
from tfmemtop.frameworks import FrameworkName
from tfmemtop.limits import HostOwner
from tfmemtop.state.history import History, Sample
from tfmemtop.state.lookup import card_pools, cpu_pool_readings, once_per_revision, pool_use, process_total, sum_known
from tfmemtop.state.model import CpuPool, DeviceState, State
from tfmemtop.state.pool_views import AllocatorRow, allocators
from tfmemtop.units import format_bytes


class LayerKind(str, Enum):
    """How a layer of a bar or a graph is drawn."""

    IN_USE = "in_use"
    CACHED = "cached"
    JAX = "jax"
    PYTORCH = "pytorch"
    CUPY = "cupy"
    RMM = "rmm"
    REST = "rest"
    OTHERS = "others"
    FREE = "free"


LAYER_NAMES = {
    LayerKind.IN_USE: "in use",
    LayerKind.CACHED: "cached",
    **{LayerKind(name.value): name.title for name in FrameworkName},
    LayerKind.REST: "context+outside",
    LayerKind.OTHERS: "others",
    LayerKind.FREE: "free",
}
"""What the layers of a GPU with a TensorFlow process are."""


class Layer(msgspec.Struct, frozen=True):
    """One layer of a stacked bar, with its ``size`` in bytes."""

    kind: LayerKind
    name: str
    size: int


class HostMemory(msgspec.Struct, frozen=True):
    """The host's memory in bytes, or the part of it that ``owner`` allows; ``cpu`` is percent of all cores."""

    cpu: float | None
    used: int | None
    total: int | None
    owner: HostOwner

    @property
    def limited(self) -> str | None:
        """Whose it is, and how much: ``the container's 16.0 GiB``; ``None`` if it is the machine's."""
        if self.owner is HostOwner.MACHINE:
            return None
        owner = "control group" if self.owner is HostOwner.CGROUP else self.owner.value
        return f"the {owner}'s {format_bytes(self.total)}"


class Whole(msgspec.Struct, frozen=True):
    """The newest run on a device, from its start to its end, in session seconds.

    ``ended`` is ``None`` while it goes on. Before the first run it is the whole session, and ``run`` is ``None``.
    """

    run: int | None
    started: float
    ended: float | None
    history: History


class RunLimit(msgspec.Struct, frozen=True):
    """The limit of a run's allocators on a device: ``size`` bytes, ``None`` if not known, from ``since`` on."""

    since: float
    size: int | None


class PhaseMark(msgspec.Struct, frozen=True):
    """A phase of the newest run on a device: its beginning in session seconds, and its ``peak`` in use, in bytes.

    Without a ``label`` it is the time from then on in which the script is in no phase.
    """

    name: str
    label: str
    began: float
    peak: int


NEARLY_FULL_PERCENT = 90
"""Percent of an allocator's limit, from which on its memory in use is drawn as nearly full."""

FRAMEWORK_LAYERS = tuple(LayerKind(name.value) for name in FrameworkName)
GPU_LAYERS = (LayerKind.IN_USE, LayerKind.CACHED, *FRAMEWORK_LAYERS, LayerKind.REST, LayerKind.OTHERS)
CPU_LAYERS = (LayerKind.IN_USE, LayerKind.CACHED)


class DevicePanel(msgspec.Struct, frozen=True, kw_only=True):
    """The panel of a GPU, or of TensorFlow's CPU pool.

    ``gpu`` and ``reading`` are the driver's data of a GPU; ``host`` is set for the CPU pool. ``capacity`` is the scale
    of bar and graph, in bytes. ``history`` has one boundary for each of ``kinds``, bottom up. ``limit`` is the sum of
    the limits of the living processes' allocators on it, where known; ``limits`` has that of each run, oldest first.
    ``ended`` if all processes of the CPU pool have ended. ``ran_out`` are the times, in session seconds, at
    which an allocation failed for good on it. ``phases`` are those of the newest run, the highest peak first; of each
    name the one with the highest peak is before all others. ``moment`` is the session second of the figures, ``None``
    for now.
    """

    key: str
    capacity: int | None
    used: int | None
    layers: tuple[Layer, ...]
    history: History
    gpu: events.Device | None = None
    reading: events.DeviceReading | None = None
    host: HostMemory | None = None
    limit: int | None = None
    peak: int | None = None
    kinds: tuple[LayerKind, ...] = ()
    ended: bool = False
    whole: Whole | None = None
    limits: tuple[RunLimit, ...] = ()
    ran_out: tuple[float, ...] = ()
    moment: float | None = None
    phases: tuple[PhaseMark, ...] = ()

    @property
    def percent_of_limit(self) -> int | None:
        """Percent of the limit that is in use, rounded down; ``None`` where either is not known."""
        if not self.limit or not self.layers or self.layers[0].kind is not LayerKind.IN_USE:
            return None
        return self.layers[0].size * 100 // self.limit


def at_moment(panel: DevicePanel, t: float, sample: Sample) -> DevicePanel:
    """Return *panel* with the figures of session second *t*.

    *sample* has the upper ends of the layers, in bytes; it is empty if nothing was read then.
    """
    before = bisect_right(panel.limits, t, key=lambda limit: limit.since)
    names = LAYER_NAMES | {layer.kind: layer.name for layer in panel.layers}
    sizes = [upper - lower for lower, upper in pairwise((0, *sample))]
    layers = [
        Layer(kind, names[kind], size)
        for kind, size in zip(panel.kinds, sizes, strict=False)
        if size or kind not in FRAMEWORK_LAYERS
    ]
    used = sample[-1] if sample else None
    if panel.capacity is not None and used is not None:
        layers.append(Layer(LayerKind.FREE, names[LayerKind.FREE], max(0, panel.capacity - used)))
    limit = panel.limits[before - 1].size if before else None
    return replace(panel, used=used, layers=tuple(layers), limit=limit, peak=None, moment=t)


@once_per_revision
def panels(state: State) -> list[DevicePanel]:
    """Return one panel for each GPU, then one for the CPU pool where TensorFlow uses it."""
    rows = allocators(state)
    on_gpu: dict[int | None, list[AllocatorRow]] = {}
    for row in rows:
        on_gpu.setdefault(row.gpu, []).append(row)
    found = [_gpu_panel(state, index, on_gpu.get(index, [])) for index in state.devices]
    if state.cpu_pool is not None:
        found.append(_cpu_panel(state, rows))
    return found


def _gpu_panel(state: State, index: int, rows: list[AllocatorRow]) -> DevicePanel:
    device = state.devices[index]
    reading, info = device.reading, device.info
    pools = card_pools(state, device)
    readings = pools.shown
    shown = {reading.device for reading in readings}
    in_use, pool = pool_use(readings)
    mine = process_total(state, device)
    used = reading.used if reading else None
    layers = []
    pool_end = in_use
    if readings:
        layers.append(Layer(LayerKind.IN_USE, "in use", in_use))
        if pool is not None:
            pool_end = max(pool, in_use)
            layers.append(Layer(LayerKind.CACHED, "cached", pool_end - in_use))
    for name, size in zip(FrameworkName, pools.others, strict=True):
        if size:
            layers.append(Layer(LayerKind(name.value), name.title, size))
            pool_end += size
    mine_end = pool_end
    if mine:
        mine_end = max(mine, pool_end)
        known = "context+outside" if pool is not None else "rest of process"
        layers.append(Layer(LayerKind.REST, known if readings or any(pools.others) else "script", mine_end - pool_end))
    used_end = max(used or 0, mine_end)
    if used is not None:
        missing = reading is not None and reading.processes_missing is not None
        whose = "rest+others" if missing and readings else "others" if state.run else "processes"
        layers.append(Layer(LayerKind.OTHERS, ("host+" if info.unified else "") + whose, used_end - mine_end))
    if reading and reading.free is not None:
        layers.append(Layer(LayerKind.FREE, "free", reading.free))
    return DevicePanel(
        key=f"gpu{index}",
        gpu=info,
        reading=reading,
        capacity=info.total,
        used=used,
        layers=tuple(layers),
        limit=sum_known(row.limit for row in rows if not row.ended and row.device in shown),
        limits=_limits(state, f"GPU {index}"),
        whole=_whole(state, device),
        ran_out=_ran_out(state, index, rows),
        phases=_phases(state, rows),
        # After the end of its processes, their own.
        peak=max((one.peak for one in readings or rows if one.peak is not None), default=None),
        history=device.history,
        kinds=GPU_LAYERS,
    )


def _limits(state: State, place: str) -> tuple[RunLimit, ...]:
    return tuple(RunLimit(run.started, run.limit_on.get(place) or None) for run in state.runs)


def _whole(state: State, place: DeviceState | CpuPool) -> Whole:
    run = state.run
    if run is None:
        return Whole(None, 0.0, None, place.history)
    kept = None if run.going else place.kept
    return Whole(run.run, run.started, run.ended, kept or place.history)


def _ran_out(state: State, place: int | str, rows: list[AllocatorRow]) -> tuple[float, ...]:
    """Return when allocations failed on *place*, whose allocators are *rows*, as the hook reported.

    XLA does not name the device: such a failure may be of any that the script uses. If the script crashed by the
    failure, the hook could not report it. Then TensorFlow's lines in the output count.
    """
    places = (place, None) if rows else (place,)
    told = [one.t for run in state.runs for one in run.ran_out if one.place in places]
    if (run := state.run) and not run.ran_out:
        names = {row.allocator for row in rows}
        told += [one.at for one in run.complaints if not one.harmless and one.allocator in names]
    return tuple(told)


def _phases(state: State, rows: list[AllocatorRow]) -> tuple[PhaseMark, ...]:
    """Return the phases in which one of the allocators *rows* was in use."""
    there = {(row.pid, row.device) for row in rows}
    found = [
        PhaseMark(phase.name, phase.label, phase.began, max(peaks))
        for phase in (state.run.phases.values() if state.run else ())
        if (peaks := [size for device, size in phase.peaks.items() if (phase.pid, device) in there])
    ]
    found.sort(key=lambda mark: -mark.peak)
    highest = {mark.name: mark for mark in reversed(found)}
    found.sort(key=lambda mark: mark is not highest[mark.name])
    return *found, *_between(state)


_BETWEEN_S = 1.0
"""Seconds. Phases that follow one another so closely have no time between them."""


def _between(state: State) -> Iterator[PhaseMark]:
    """Yield the ends of the script's phases after which it was in none for a while, as far as no phase is left out."""
    run = state.run
    until: float | None = None
    newest: dict[int, int] = {}  # by process: the number of its newest phase
    for one in sorted(run.phases.values(), key=lambda one: one.began) if run else ():
        number = newest.get(one.pid, 0)
        if until is not None and one.began > until + _BETWEEN_S and one.number <= number + 1:
            yield PhaseMark("", "", until, 0)
        newest[one.pid] = max(number, one.number)
        until = max(until or 0.0, float("inf") if one.ended is None else one.ended)
    end = run.ended if run and run.ended is not None else state.now
    if until is not None and end > until + _BETWEEN_S:
        yield PhaseMark("", "", until, 0)


def _cpu_panel(state: State, all_rows: list[AllocatorRow]) -> DevicePanel:
    assert state.cpu_pool is not None
    readings = cpu_pool_readings(state)
    in_use, pool = pool_use(readings)
    pids = {reading.pid for reading in readings}
    rows = [row for row in all_rows if is_cpu(row.device) and row.pid in pids]
    limit = sum_known(row.limit for row in rows)
    host = state.session.host_memory if state.session else None
    # Until a relaunched script has made its devices, its pool is as large as was chosen.
    chosen = state.run.settings.limit(has_gpus=False) if state.run and not rows else None
    capacity = next((size for size in (limit, chosen, host) if size is not None), None)
    layers = [Layer(LayerKind.IN_USE, "in use", in_use)]
    if pool is not None and readings:
        layers.append(Layer(LayerKind.CACHED, "cached", max(0, pool - in_use)))
    if capacity is not None:
        layers.append(Layer(LayerKind.FREE, "free", max(0, capacity - max(in_use, pool or 0))))
    return DevicePanel(
        key="cpu",
        host=host_memory(state),
        capacity=capacity,
        used=max(in_use, pool or 0),
        layers=tuple(layers),
        limit=limit,
        peak=max((row.peak for row in rows if row.peak is not None), default=None),
        history=state.cpu_pool.history,
        kinds=CPU_LAYERS,
        # A process goes on for seconds after its hook has ended, and so does its run.
        ended=bool(rows) and all(state.processes[row.pid].gone for row in rows),
        limits=_limits(state, "cpu"),
        whole=_whole(state, state.cpu_pool),
        ran_out=_ran_out(state, "cpu", rows),
        phases=_phases(state, rows),
    )


def seconds_a_step(state: State, times: Sequence[float]) -> list[float | None]:
    """Return the seconds that a step of the run took between each two of *times*, in session seconds; ``None`` if none.

    A step is a call of the function that the run calls most often.
    """
    found: list[float | None] = [None] * (len(times) - 1)
    for run in state.runs:
        end = state.now if run.ended is None else run.ended
        first, stop = bisect_left(times, run.started), bisect_right(times, end)
        if run.steps and stop - first > 1:
            found[first : stop - 1] = run.steps.seconds_a_step(times[first:stop])
    return found


def host_memory(state: State) -> HostMemory:
    """Return the host's memory by the session's event and the newest reading."""
    session = state.session
    return HostMemory(
        cpu=state.host_cpu,
        used=state.host_used,
        total=session.host_memory if session else None,
        owner=session.host_memory_of if session else HostOwner.MACHINE,
    )


def host_panel(state: State) -> DevicePanel | None:
    """Return a panel of the host's memory: the run's processes, others, and free; ``None`` without a run or a reading.

    Memory that processes share is counted for each of them. So with several processes the script's layer may be too
    large. It is never more than the used memory of the host.
    """
    host = host_memory(state)
    run = state.run.run if state.run else None
    mine = [process for process in state.processes.values() if process.seen.run == run and not process.gone]
    held = [process.reading.rss for process in mine if process.reading.rss is not None]
    if run is None or not held or host.used is None or host.total is None:
        return None
    script = min(sum(held), host.used)
    layers = (
        Layer(LayerKind.REST, "script", script),
        Layer(LayerKind.OTHERS, "others", host.used - script),
        Layer(LayerKind.FREE, "free", max(0, host.total - host.used)),
    )
    return DevicePanel(key="host", host=host, capacity=host.total, used=host.used, layers=layers, history=History())
