"""The fold: one event after another into the state. No I/O, no clock of its own."""

from collections.abc import Callable
from typing import Any, Literal

from tfmemtop import events
from tfmemtop.failure import describe
from tfmemtop.state import contexts
from tfmemtop.state.complaints import complaints
from tfmemtop.state.lookup import (
    PINNED,
    allocators_of,
    allocators_on,
    cpu_pool_readings,
    device_of,
    hooked_of,
    living,
    of_run,
    pool_use,
    process_total,
    surroundings,
)
from tfmemtop.state.model import (
    DEVICES_KEPT,
    NOTICES_KEPT,
    OUTPUT_CHARACTERS,
    PROCESSES_KEPT,
    RUNS_KEPT,
    CpuPool,
    DeviceState,
    Failure,
    Hooked,
    OutputChunk,
    Pool,
    ProcessState,
    RunState,
    State,
)
from tfmemtop.state.trend import Trend


def apply(state: State, event: events.AnyEvent) -> None:
    """Take *event* into *state*. Never raises: one that cannot be taken in becomes a notice."""
    state.now = max(state.now, event.t)
    state.revision += 1
    try:
        _HANDLERS[type(event)](state, event)
    except Exception as error:
        _tell(state, "left-out-event", "error", f"a reading could not be taken in: {describe(error)}")


def _tell(state: State, key: str, level: Literal["warning", "error"], text: str) -> None:
    """Say *text* among the notices, of which only the newest are kept."""
    if key not in state.notices and len(state.notices) > NOTICES_KEPT:
        return
    state.notices[key] = events.Notice(t=state.now, key=key, level=level, text=text)


def _named(state: State, pid: int, device: str) -> Hooked | None:
    """What our agent told of process *pid*, if it may tell of *device*: nobody has devices without end."""
    hooked = hooked_of(state, pid)
    if hooked is None or device in hooked.devices:
        return hooked
    if len(hooked.devices) < DEVICES_KEPT:
        hooked.devices.add(device)
        return hooked
    text = f"process {pid} names more than {DEVICES_KEPT} devices; what it tells of the others is left out"
    _tell(state, "left-out-devices", "warning", text)
    return None


def _room_for(state: State, pid: int) -> bool:
    if pid in state.processes or len(state.processes) < PROCESSES_KEPT:
        return True
    text = f"there are more than {PROCESSES_KEPT} processes; the others are left out"
    _tell(state, "left-out-processes", "warning", text)
    return False


def _session(state: State, event: events.Session) -> None:
    state.session = event


def _run(state: State, event: events.Run) -> None:
    # The last picture of the run before stays only until the next begins.
    for pid in [pid for pid, process in state.processes.items() if process.gone]:
        del state.processes[pid]
    state.environments.clear()
    if before := state.run:
        if before.going:
            before.ended = event.t  # its end has not been told
        if before.steps:
            before.steps = before.steps.summary()
    del state.runs[: 1 - RUNS_KEPT]
    state.runs.append(RunState(event.run, event.pid, event.argv, event.cwd, event.settings, started=event.t))


def _run_of(state: State, number: int) -> RunState | None:
    return next((run for run in reversed(state.runs) if run.run == number), None)


def _run_end(state: State, event: events.RunEnd) -> None:
    if run := _run_of(state, event.run):
        run.ended, run.exit_code, run.signal = event.t, event.exit_code, event.signal
        run.oom_killed = event.oom_killed


def _stopping(state: State, event: events.Stopping) -> None:
    if run := _run_of(state, event.run):
        run.stopping = event


def _device(state: State, event: events.Device) -> None:
    if known := state.devices.get(event.index):
        state.by_uuid.pop(known.info.uuid, None)
        known.info = event
        state.by_uuid[event.uuid] = known
    else:
        state.devices[event.index] = state.by_uuid[event.uuid] = DeviceState(event)
        state.devices = dict(sorted(state.devices.items()))


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
                # Whose memory it is cannot be told: only the first reading is surely before the run's own.
                run.before.setdefault(event.index, (event.used, event.free))
        if total is not None:
            # Over all GPUs, as the limit of a card concerns each alone: the highest on any one.
            run.peak_process_total = max(run.peak_process_total or 0, total)
        elif run.peak_process_total == 0:
            run.peak_process_total = None  # nothing was held because nothing was seen


def _process(state: State, event: events.Process) -> None:
    if not _room_for(state, event.pid):
        return
    known = state.processes.get(event.pid)
    if known and known.seen.started == event.started:
        known.seen, known.gone = event, False
    elif known:
        # The hook's greeting may have come before the process was first seen.
        state.processes[event.pid] = ProcessState(event, hooked=known.hooked if not known.seen.started else None)
    else:
        state.processes[event.pid] = ProcessState(event)


def _process_readings(state: State, event: events.ProcessReadings) -> None:
    state.host_used, state.host_cpu = event.host_used, event.host_cpu
    for reading in event.processes:
        if process := state.processes.get(reading.pid):
            process.cpu, process.rss = reading.cpu, reading.rss
    alive = {reading.pid for reading in event.processes}
    run = state.run
    if run and run.going:
        run.busy.append((event.t, sum(r.cpu or 0.0 for r in event.processes if of_run(state, r.pid))))
    for pid in [pid for pid in state.processes if pid not in alive]:
        process = state.processes[pid]
        if not process.seen.started:
            continue  # known only through its hook so far
        if process.hooked and run and process.seen.run == run.run:
            process.gone = process.hooked.ended = True
        else:
            del state.processes[pid]


def _environment(state: State, event: events.Environment) -> None:
    state.environments = {event.pid: event}


def _hook(state: State, event: events.Hook) -> None:
    if not _room_for(state, event.pid):
        return
    process = state.processes.get(event.pid)
    if process is None:
        run = state.run.run if state.run and state.run.going else None
        seen = events.Process(
            t=event.t, pid=event.pid, ppid=event.ppid, user="", command=event.argv, started=0.0, run=run
        )
        process = state.processes[event.pid] = ProcessState(seen)
    if process.hooked and process.hooked.hello.tensorflow is None and not process.hooked.ended:
        process.hooked.hello = event  # the second greeting, with TensorFlow's version
    else:
        process.hooked = Hooked(event)


def _hook_end(state: State, event: events.HookEnd) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.ended, hooked.dropped = True, max(hooked.dropped, event.dropped)


def _hook_error(state: State, event: events.HookError) -> None:
    key = f"hook-error-{event.pid}"
    text = f"a part of the hook failed in process {event.pid}; the script goes on: {event.text}"
    _notice(state, events.Notice(t=event.t, key=key, level="warning", text=text))


def _requested(state: State, event: events.Requested) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.requested.append(event)


def _initialised(state: State, event: events.Initialised) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.initialised = event


def _effective(state: State, event: events.Effective) -> None:
    if hooked := _named(state, event.pid, event.device):
        hooked.effective[event.device] = event
        run = state.run
        known = run is not None and (event.device in run.effective or len(run.effective) < DEVICES_KEPT)
        if run and known and run.going and of_run(state, event.pid):
            run.effective[event.device] = event


def _allocator(state: State, event: events.Allocator) -> None:
    hooked = _named(state, event.pid, event.device)
    if hooked is None:
        return
    hooked.allocators[event.device] = event
    if event.device.startswith(PINNED):
        return
    # What the native sampler saw between two readings: in the history just before the reading itself.
    spike = max(0, (event.high or 0) - (event.in_use or 0))
    if event.device.startswith("CPU"):
        if state.cpu_pool is None:
            state.cpu_pool = CpuPool()
        readings = cpu_pool_readings(state)
        in_use, pool = pool_use(readings)
        for highest in [in_use + spike, in_use] if spike else [in_use]:
            state.cpu_pool.history.add(event.t, (highest, max(highest, pool or 0)))
        _remember_run(state, "cpu", readings, spike, 0)
    elif device := device_of(state, event.pid, event.device):
        if spike:
            _remember_device(state, device, spike)
        _remember_device(state, device)
        contexts.pools_read(hooked, device.info.index, allocators_of(state, event.pid, hooked, device))
    run = state.run
    if event.in_use is not None:
        trend = hooked.trends.setdefault(event.device, Trend())
        trend.add(event.t, event.in_use, event.high or event.in_use, event.peak)
    if run and run.going and event.peak is not None:
        run.peak_in_use = max(run.peak_in_use or 0, event.peak)
    if run and run.going and event.pool is not None:
        run.peak_pool = max(run.peak_pool or 0, event.peak_pool or 0, event.pool)


def _pool(state: State, event: events.PoolGrowth | events.MemoryMap) -> Pool | None:
    hooked = _named(state, event.pid, event.device)
    return hooked.pools.setdefault(event.device, Pool()) if hooked else None


def _pool_growth(state: State, event: events.PoolGrowth) -> None:
    if pool := _pool(state, event):
        pool.growths.append(event)


def _memory_map(state: State, event: events.MemoryMap) -> None:
    if pool := _pool(state, event):
        if event.moment == "out_of_memory":
            pool.exhausted = event
        elif event.region is not None:
            pool.zoom = event
        else:
            pool.map = event
            if (run := state.run) and run.going and not event.missing:
                maps = [
                    pool.map
                    for hooked in living(state)
                    for name, pool in hooked.pools.items()
                    if pool.map and not pool.map.missing and not name.startswith(PINNED)
                ]
                if maps:
                    run.fragmentation = max(maps, key=lambda each: each.pool).fragmentation


def _probe(state: State, event: events.Probe) -> None:
    if hooked := hooked_of(state, event.pid):
        if event.of_library:
            hooked.probe = event
        else:
            hooked.without_probe = event


def _functions(state: State, event: events.Functions) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.steps.add(event)
        run = state.run if of_run(state, event.pid) else None
        if run and run.going and (run.steps is None or hooked.steps.calls > run.steps.calls):
            run.steps = hooked.steps


def _census(state: State, event: events.Census) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.census = event
        if event.looked:
            hooked.look = event


def _out_of_memory(state: State, event: events.OutOfMemory) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.out_of_memory.append(event)
        hooked.failure = Failure(event, surroundings(state, hooked))
    if state.run and state.run.going:
        state.run.out_of_memory += 1


def _waiting(state: State, event: events.Waiting) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.waiting = event


def _output(state: State, event: events.Output) -> None:
    if run := _run_of(state, event.run):
        run.complaints += complaints(event.t, state.output[-1].text if state.output else "", event.text)
    state.output.append(OutputChunk(state.output_count, event.run, event.text, event.skipped))
    state.output_count += 1
    state.output_characters += len(event.text)
    while state.output_characters > OUTPUT_CHARACTERS and len(state.output) > 1:
        state.output_characters -= len(state.output.popleft().text)


def _terminal(state: State, event: events.Terminal) -> None:
    state.terminal = event


def _notice(state: State, event: events.Notice) -> None:
    state.notices.pop(event.key, None)
    if event.text:
        state.notices[event.key] = event
    if len(state.notices) > NOTICES_KEPT:
        del state.notices[next(key for key in state.notices if key != "left-out-notices")]
        _tell(state, "left-out-notices", "warning", f"there are more than {NOTICES_KEPT} notices; the newest are kept")


def _remember_contexts(state: State, device: DeviceState, reading: events.DeviceReading) -> None:
    for pid, share in device.by_pid.items():
        hooked = hooked_of(state, pid)
        if hooked is None or hooked.ended or share.used is None:
            continue
        # While TensorFlow makes its devices the context is still growing.
        if hooked.effective or (hooked.initialised and not hooked.initialised.error):
            readings = allocators_of(state, pid, hooked, device)
            pool = pool_use(readings)[1] if readings else None
            contexts.total_read(hooked, device.info.index, reading, share.used, pool)


def _remember_device(state: State, device: DeviceState, spike: int = 0) -> None:
    readings, mine = allocators_on(state, device), process_total(state, device) or 0
    in_use, pool = pool_use(readings)
    in_use += spike
    pool_end = max(in_use, pool or 0)
    # NVML is read less often than the allocators: an older total never undercuts a newer pool.
    mine_end = max(pool_end, mine)
    used = device.reading.used if device.reading else None
    device.history.add(state.now, (in_use, pool_end, mine_end, max(mine_end, used or 0)))
    _remember_run(state, f"GPU {device.info.index}", readings, spike, mine)


def _remember_run(state: State, place: str, readings: list[events.Allocator], spike: int, total: int) -> None:
    """The newest run's own part of *readings*, of one GPU or the CPU pool, and the *total* it holds there."""
    if (run := state.run) and run.going:
        in_use, pool = pool_use([reading for reading in readings if of_run(state, reading.pid)])
        in_use += spike
        run.held[place] = in_use, max(in_use, pool or 0), max(in_use, pool or 0, total)
        run.curve.add(state.now - run.started, tuple(map(max, zip(*run.held.values(), strict=True))))


_HANDLERS: dict[type[events.Event], Callable[[State, Any], None]] = {
    events.Session: _session,
    events.Run: _run,
    events.RunEnd: _run_end,
    events.Stopping: _stopping,
    events.Device: _device,
    events.DeviceReading: _device_reading,
    events.Process: _process,
    events.ProcessReadings: _process_readings,
    events.Environment: _environment,
    events.Hook: _hook,
    events.HookEnd: _hook_end,
    events.HookError: _hook_error,
    events.Requested: _requested,
    events.Initialised: _initialised,
    events.Effective: _effective,
    events.Allocator: _allocator,
    events.PoolGrowth: _pool_growth,
    events.MemoryMap: _memory_map,
    events.Probe: _probe,
    events.Functions: _functions,
    events.Census: _census,
    events.OutOfMemory: _out_of_memory,
    events.Waiting: _waiting,
    events.Output: _output,
    events.Terminal: _terminal,
    events.Notice: _notice,
}
