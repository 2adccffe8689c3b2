"""Views of the state: what each panel shows, worked out, so that the screen does no arithmetic."""

from dataclasses import dataclass
from pathlib import PurePath

from tfmemtop import events
from tfmemtop.state.history import History
from tfmemtop.state.lookup import PINNED, allocators_on, cpu_pool_readings, device_of, of_run, pool_use, process_total
from tfmemtop.state.memo import once_per_revision
from tfmemtop.state.model import ProcessState, State
from tfmemtop.state.steps import Pace, pace
from tfmemtop.units import format_bytes


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a stacked bar: ``in_use``, ``cached``, ``rest``, ``others`` or ``free``; bytes."""

    kind: str
    label: str
    size: int


@dataclass(frozen=True, slots=True)
class DevicePanel:
    """A GPU, or TensorFlow's CPU pool, as its panel shows it.

    ``capacity`` is the scale of bar and graph, in bytes; ``history`` has one boundary for each of
    ``kinds``, bottom up. ``limit`` is that of the allocators on it, where known.
    """

    key: str
    title: str
    facts: tuple[str, ...]
    capacity: int | None
    used: int | None
    layers: tuple[Layer, ...]
    limit: int | None
    peak: int | None
    history: History
    kinds: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The newest run in the header. ``phase``: running, stopping, releasing, ended; ``kill_in_s`` while stopping."""

    command: str
    run: int
    phase: str
    elapsed_s: float
    kill_in_s: float | None
    settings: tuple[str, ...]
    pace: Pace | None


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process on one GPU (or on none); unknown figures are ``None``. Sizes in bytes, shares in percent."""

    pid: int
    ppid: int
    gpu: int | None
    user: str
    gpu_memory: int | None
    sm: int | None
    bandwidth: int | None
    cpu: float | None
    rss: int | None
    in_use: int | None
    pool: int | None
    peak: int | None
    elapsed_s: float | None
    command: str
    of_run: bool
    hooked: bool
    gone: bool
    hooked_out: str | None


@dataclass(frozen=True, slots=True)
class AllocatorRow:
    """One allocator of one process."""

    pid: int
    device: str
    gpu: int | None
    allocator: str | None
    in_use: int | None
    cached: int | None
    pool: int | None
    peak: int | None
    limit: int | None
    growth: bool | None
    settled: tuple[str, ...]
    ended: bool


@once_per_revision
def panels(state: State) -> list[DevicePanel]:
    """One panel for each GPU, then one for the CPU pool where TensorFlow uses it."""
    rows = allocators(state)
    found = [_gpu_panel(state, index, rows) for index in state.devices]
    if state.cpu_pool is not None:
        found.append(_cpu_panel(state, rows))
    return found


def _gpu_panel(state: State, index: int, rows: list[AllocatorRow]) -> DevicePanel:
    device = state.devices[index]
    reading, info = device.reading, device.info
    readings = allocators_on(state, device)
    in_use, pool = pool_use(readings)
    mine = process_total(state, device)
    used = reading.used if reading else None
    layers = []
    pool_end = in_use
    if readings:
        layers.append(Layer("in_use", "in use", in_use))
        if pool is not None:
            pool_end = max(pool, in_use)
            layers.append(Layer("cached", "cached", pool_end - in_use))
    mine_end = pool_end
    if mine:
        mine_end = max(mine, pool_end)
        label = "context+outside" if pool is not None and readings else "rest of process" if readings else "script"
        layers.append(Layer("rest", label, mine_end - pool_end))
    used_end = max(used or 0, mine_end)
    if used is not None:
        missing = reading is not None and reading.processes_missing is not None
        label = "rest+others" if missing and readings else "others" if state.run else "processes"
        label = f"host+{label}" if info.unified else label
        layers.append(Layer("others", label, used_end - mine_end))
    if reading and reading.free is not None:
        layers.append(Layer("free", "free", reading.free))
    return DevicePanel(
        key=f"gpu{index}",
        title=f"GPU {index} {info.name}" + (" MIG" if info.mig and "MIG" not in info.name else ""),
        facts=_facts(reading),
        capacity=info.total,
        used=used,
        layers=tuple(layers),
        limit=_sum_limits([row for row in rows if row.gpu == index and not row.ended]),
        peak=max((r.peak for r in readings if r.peak is not None), default=None),
        history=device.history,
        kinds=("in_use", "cached", "rest", "others"),
        note="; ".join(notes(reading)) if reading else "no reading yet",
    )


def notes(reading: events.DeviceReading) -> list[str]:
    """Why figures of a GPU lack, and whose others are."""
    found = [reading.processes_missing, reading.remark]
    if reading.outside is not None:
        found.insert(1, f"processes outside this container hold {format_bytes(reading.outside)}")
    return [note for note in found if note]


def _sum_limits(rows: list[AllocatorRow]) -> int | None:
    limits = [row.limit for row in rows]
    return sum(limit for limit in limits if limit is not None) if limits and None not in limits else None


def _facts(reading: events.DeviceReading | None) -> tuple[str, ...]:
    if reading is None:
        return ()
    facts = []
    if reading.utilisation is not None:
        facts.append(f"util {reading.utilisation}%")
    if reading.bandwidth is not None:
        facts.append(f"mem {reading.bandwidth}%")
    if reading.power_w is not None:
        facts.append(f"{reading.power_w:.0f} W")
    if reading.temperature_c is not None:
        facts.append(f"{reading.temperature_c} °C")
    return tuple(facts)


def _cpu_panel(state: State, all_rows: list[AllocatorRow]) -> DevicePanel:
    assert state.cpu_pool is not None
    readings = cpu_pool_readings(state)
    in_use, pool = pool_use(readings)
    pids = {reading.pid for reading in readings}
    rows = [row for row in all_rows if row.device.startswith("CPU") and row.pid in pids]
    limit = _sum_limits(rows)
    host = state.session.host_memory if state.session else None
    capacity = limit if limit is not None else host
    layers = [Layer("in_use", "in use", in_use)]
    if pool is not None and readings:
        layers.append(Layer("cached", "cached", max(0, pool - in_use)))
    if capacity is not None:
        layers.append(Layer("free", "free", max(0, capacity - max(in_use, pool or 0))))
    facts = [] if state.host_cpu is None else [f"host CPU {state.host_cpu:.0f}%"]
    facts += _limited_use(state)
    return DevicePanel(
        key="cpu",
        title="CPU pool" + (", as it was when the script ended" if rows and all(row.ended for row in rows) else ""),
        facts=tuple(facts),
        capacity=capacity,
        used=max(in_use, pool or 0),
        layers=tuple(layers),
        limit=limit,
        peak=max((row.peak for row in rows if row.peak is not None), default=None),
        history=state.cpu_pool.history,
        kinds=("in_use", "cached"),
    )


def limited_memory(state: State) -> str | None:
    """Whose the host memory is and how much, where that is not the whole machine's: ``the container's 16.0 GiB``."""
    session = state.session
    if session is None or session.host_memory_of == "machine":
        return None
    owner = "control group" if session.host_memory_of == "cgroup" else session.host_memory_of
    return f"the {owner}'s {format_bytes(session.host_memory)}"


def _limited_use(state: State) -> list[str]:
    """What is used of the host memory where that is not the whole machine's: ``3.0 of the container's 16.0 GiB``."""
    whole = limited_memory(state)
    if whole is None:
        return []
    return [f"{format_bytes(state.host_used).removesuffix(' ' + whole.rpartition(' ')[2])} of {whole}"]


@once_per_revision
def processes(state: State) -> list[ProcessRow]:
    """A row for every process and GPU it holds memory on; for those of the run also without a GPU."""
    on_gpu: dict[int, list[int]] = {}
    for index, device in state.devices.items():
        for pid in device.by_pid:
            on_gpu.setdefault(pid, []).append(index)
    rows: list[ProcessRow] = []
    for pid, process in state.processes.items():
        places: list[int | None] = [*on_gpu.get(pid, [])] or [None]
        rows.extend(_process_row(state, pid, process, index) for index in places)
    return rows


def process_count(state: State) -> int:
    """How many rows :func:`processes` gives, without making them."""
    places: dict[int, int] = {}
    for device in state.devices.values():
        for pid in device.by_pid:
            places[pid] = places.get(pid, 0) + 1
    return sum(places.get(pid, 1) for pid in state.processes)


def _process_row(state: State, pid: int, process: ProcessState, index: int | None) -> ProcessRow:
    share = state.devices[index].by_pid[pid] if index is not None else None
    readings = []
    if process.hooked:
        for logical, reading in process.hooked.allocators.items():
            device = device_of(state, pid, logical)
            # On a GPU's row what is on that GPU; on a row without one, all that devices have.
            if logical.startswith(PINNED):
                continue
            if index is None or (device is not None and device.info.index == index):
                readings.append(reading)
    in_use, pool = pool_use(readings)
    seen = process.seen
    started = state.session.started if state.session else 0.0
    return ProcessRow(
        pid=pid,
        ppid=seen.ppid,
        gpu=index,
        user=seen.user,
        gpu_memory=share.used if share else None,
        sm=share.sm if share else None,
        bandwidth=share.bandwidth if share else None,
        cpu=None if process.gone else process.cpu,
        rss=process.rss,
        in_use=in_use if readings else None,
        pool=pool if readings else None,
        peak=sum(reading.peak or 0 for reading in readings) if readings else None,
        elapsed_s=started + state.now - seen.started if seen.started else None,
        command=" ".join(seen.command),
        of_run=of_run(state, pid),
        hooked=process.hooked is not None,
        gone=process.gone,
        hooked_out=seen.hooked_out,
    )


@once_per_revision
def allocators(state: State) -> list[AllocatorRow]:
    """Every allocator of every hooked process, the newest reading of each."""
    rows = []
    for pid, process in state.processes.items():
        if process.hooked is None:
            continue
        for logical, reading in sorted(process.hooked.allocators.items()):
            effective = process.hooked.effective.get(logical)
            device = device_of(state, pid, logical)
            limit = reading.limit if reading.limit is not None else effective.limit if effective else None
            cached = None if reading.pool is None or reading.in_use is None else reading.pool - reading.in_use
            rows.append(
                AllocatorRow(
                    pid=pid,
                    device=logical,
                    gpu=device.info.index if device else None,
                    allocator=reading.allocator or (effective.allocator if effective else None),
                    in_use=reading.in_use,
                    cached=cached,
                    pool=reading.pool,
                    peak=reading.peak,
                    limit=limit,
                    growth=effective.growth if effective else None,
                    settled=tuple(effective.settled) if effective else (),
                    ended=process.hooked.ended,
                )
            )
    return rows


def run_status(state: State) -> RunStatus | None:
    """The newest run, how it stands, and the settings in effect; ``None`` before the first."""
    run = state.run
    if run is None:
        return None
    stopping = run.stopping
    phase, kill_in_s = ("running", None) if run.going else ("ended", None)
    if stopping and stopping.phase in ("term", "kill") and run.going:
        phase = "stopping"
        kill_in_s = None if stopping.deadline is None else max(0.0, stopping.deadline - state.now)
    elif stopping and stopping.phase == "releasing":
        phase = "releasing"
    elapsed_s = (run.ended if run.ended is not None else state.now) - run.started
    return RunStatus(
        command=" ".join([PurePath(run.argv[0]).name, *run.argv[1:]]) if run.argv else "",
        run=run.run,
        phase=phase,
        elapsed_s=elapsed_s,
        kill_in_s=kill_in_s,
        settings=tuple(settings_in_effect(state)),
        pace=pace(run.steps, run.ended if run.ended is not None else state.now) if run.steps else None,
    )


def settings_in_effect(state: State) -> list[str]:
    """What TensorFlow does in the newest run, as words; before it says so, what the user chose."""
    settled = [
        effective
        for pid, process in state.processes.items()
        if process.hooked and of_run(state, pid)
        for effective in process.hooked.effective.values()
    ]
    if not settled:
        return state.run.settings.words() if state.run else []
    # The pool on the CPU always grows, up to a limit of its own: beside GPUs it would tell another story.
    settled = [effective for effective in settled if effective.device.startswith("GPU")] or settled
    words = []
    growths = {effective.growth for effective in settled if effective.growth is not None}
    if len(growths) == 1:
        words.append("growth on" if growths.pop() else "growth off")
    elif growths:
        words.append("growth differs")
    # A limit that TensorFlow chose by itself is the allocators' panel's business.
    limits = [effective.limit for effective in settled if effective.limit is not None]
    if limits:
        words.append("limit " + " + ".join(format_bytes(limit) for limit in limits))
    words += sorted({effective.allocator for effective in settled if effective.allocator})
    return words
