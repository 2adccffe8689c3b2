"""The fold: it applies one event after another to the state. It does no I/O and has no clock of its own."""

from typing import Literal

from msgspec.structs import asdict

from tfmemtop import events
from tfmemtop.events import Level, NoticeKind
from tfmemtop.events.machine import is_cpu
from tfmemtop.failure import facts_of
from tfmemtop.state.fold_memory import HANDLERS, folds
from tfmemtop.state.history import UseWindow
from tfmemtop.state.lookup import device_of, hooked_of, of_run, surroundings
from tfmemtop.state.model import (
    GONE_KEPT,
    NOTICES_KEPT,
    OUTPUT_CHARACTERS,
    RUNS_KEPT,
    WINDOWS_KEPT,
    CpuPool,
    DeviceState,
    Failure,
    Hooked,
    ProcessState,
    RanOut,
    RunState,
    State,
)
from tfmemtop.tensorflow_text import NO_START, lines_of_exhaustion


def apply(state: State, event: events.Event) -> None:
    """Apply *event* to *state*. Raises nothing: an event that cannot be applied becomes a notice."""
    state.now = max(state.now, event.t)
    state.revision += 1
    try:
        HANDLERS[type(event)](state, event)
    except Exception as error:
        key, kind, level = "left-out-event", NoticeKind.EVENT_LEFT_OUT, Level.ERROR
        notice = events.Notice(t=state.now, key=key, level=level, kind=kind, detail=facts_of(error))
        _notice(state, notice)


@folds(events.Session)
def _session(state: State, event: events.Session) -> None:
    state.session = event


@folds(events.CaughtUp)
def _caught_up(state: State, event: events.CaughtUp) -> None:
    """Change nothing."""


@folds(events.Run)
def _run(state: State, event: events.Run) -> None:
    # The ended processes of the run before are kept only until the next run begins.
    for pid in [pid for pid, process in state.processes.items() if process.gone]:
        del state.processes[pid]
    state.environments.clear()
    if before := state.run:
        if before.going:
            before.ended = event.t  # no event of its end has come
        if before.steps:
            before.steps = before.steps.summary()
    del state.runs[: 1 - RUNS_KEPT]
    fields = asdict(event)
    state.runs.append(RunState(started=fields.pop("t"), **fields))


@folds(events.Upcoming)
def _upcoming(state: State, event: events.Upcoming) -> None:
    state.upcoming = event.settings


def _run_of(state: State, number: int) -> RunState | None:
    return next((run for run in reversed(state.runs) if run.run == number), None)


@folds(events.RunEnd)
def _run_end(state: State, event: events.RunEnd) -> None:
    if run := _run_of(state, event.run):
        run.ended, run.end = event.t, event
        if run is state.run:
            places: list[DeviceState | CpuPool] = [*state.devices.values()]
            for place in places + ([state.cpu_pool] if state.cpu_pool else []):
                place.kept = place.history.last(event.t - run.started)
            if state.cpu_pool:
                # No reading will show that the memory is free now; for a GPU, the driver's readings do.
                state.cpu_pool.history.add(event.t, (0, 0))
        script = state.processes.get(run.pid)
        if script and script.hooked:
            # The next reading of all processes would show this, but a recording may end before it.
            script.gone = script.hooked.ended = True


@folds(events.Stopping)
def _stopping(state: State, event: events.Stopping) -> None:
    if run := _run_of(state, event.run):
        run.stopping = event
        run.stopped |= event.phase in (events.StoppingPhase.TERM, events.StoppingPhase.KILL)


@folds(events.Device)
def _device(state: State, event: events.Device) -> None:
    if known := state.devices.get(event.index):
        state.by_uuid.pop(known.info.uuid, None)
        known.info = event
        state.by_uuid[event.uuid] = known
    else:
        state.devices[event.index] = state.by_uuid[event.uuid] = DeviceState(event)
        state.devices = dict(sorted(state.devices.items()))


@folds(events.Process)
def _process(state: State, event: events.Process) -> None:
    known = state.processes.get(event.pid)
    # The first event of its hook, or of a reading from outside, may have come before the process was first found.
    if known and (not known.seen.started or known.seen.started == event.started):
        known.seen, known.gone = event, False
    else:
        state.processes[event.pid] = ProcessState(event)


@folds(events.ProcessReadings)
def _process_readings(state: State, event: events.ProcessReadings) -> None:
    state.host_used, state.host_cpu = event.host_used, event.host_cpu
    for reading in event.processes:
        if process := state.processes.get(reading.pid):
            process.reading = reading
            if reading.rss is not None:
                process.rss_peak = max(reading.rss, process.rss_peak or 0)
                if process.hooked and not process.hooked.ended:
                    process.hooked.host.add(event.t, UseWindow(event.t, reading.rss, reading.rss))
    alive = {reading.pid for reading in event.processes}
    run = state.run
    if run and run.going:
        run.busy.append((event.t, sum(r.cpu or 0.0 for r in event.processes if of_run(state, r.pid))))
    for pid in [pid for pid in state.processes if pid not in alive]:
        process = state.processes[pid]
        if not process.seen.started:
            continue  # so far only its hook has reported it
        if not of_run(state, pid) or not (process.hooked or _alone(state, pid)):
            del state.processes[pid]
            continue
        process.gone = True
        if process.hooked:
            process.hooked.ended = True
    _forget_oldest(state)


def _forget_oldest(state: State) -> None:
    """Drop all but the newest ended processes: a run may start a child every few minutes, for weeks."""
    first = state.run.pid if state.run else None
    gone = [pid for pid, process in state.processes.items() if process.gone and pid != first]
    for pid in gone[:-GONE_KEPT]:
        del state.processes[pid]


def _alone(state: State, pid: int) -> bool:
    """Return whether *pid* is the run's first process, and no process of the run had TensorFlow.

    Such a process is kept after its end: otherwise the state would have no process of the run.
    """
    first = state.run is not None and pid == state.run.pid
    return first and not any(other.hooked and of_run(state, number) for number, other in state.processes.items())


@folds(events.Environment)
def _environment(state: State, event: events.Environment) -> None:
    state.environments = {event.pid: event}


def _process_of(state: State, event: events.Hook | events.Outside, run: int | None) -> ProcessState:
    """Return the process of *event*. If nothing was known of it before, it is a new one, of *run*."""
    if event.pid not in state.processes:
        seen = events.Process(
            t=event.t, pid=event.pid, ppid=event.ppid, user="", command=event.argv, started=0.0, run=run
        )
        state.processes[event.pid] = ProcessState(seen)
    return state.processes[event.pid]


@folds(events.Hook)
def _hook(state: State, event: events.Hook) -> None:
    process = _process_of(state, event, state.run.run if state.run and state.run.going else None)
    if process.hooked and not (process.hooked.ended or (process.hooked.outside and process.hooked.hello.tensorflow)):
        process.hooked.hello = event  # the hook's next message, with the version of TensorFlow or another framework
    else:
        process.hooked = Hooked(event)


@folds(events.Outside)
def _outside(state: State, event: events.Outside) -> None:
    ours = state.run is not None and state.run.going and state.run.pid == event.pid
    process = _process_of(state, event, state.run.run if state.run and ours else None)
    process.outside = event
    if event.state.inside and (process.hooked is None or process.hooked.ended):
        hello = events.Hook(
            t=event.t,
            pid=event.pid,
            ppid=event.ppid,
            argv=event.argv,
            python=event.python,
            executable=event.executable,
            tensorflow=event.tensorflow,
            tensorflow_path=event.tensorflow_path,
        )
        process.hooked = Hooked(hello, outside=True)
    elif not event.state.may_change and process.hooked and process.hooked.outside:
        process.hooked.ended = True
    if event.state is events.OutsideState.EXECUTED and process.hooked and process.hooked.outside:
        process.hooked.ended = True
    if event.state is events.OutsideState.LEFT and state.run and state.run.pid == event.pid:
        state.run.left = True


@folds(events.HookEnd)
def _hook_end(state: State, event: events.HookEnd) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.ended, hooked.dropped = True, max(hooked.dropped, event.dropped)
        lost = event.reason is events.HookEnding.LOST
        hooked.lost = event.t if lost else None
        hooked.at_end = hooked.at_end or surroundings(state, hooked)
        if state.run and of_run(state, event.pid):
            state.run.dropped += event.dropped
            # Only a hook that announces its end sends a last reading.
            state.run.unread = state.run.unread or (lost and bool(hooked.allocators))


@folds(events.HookError)
def _hook_error(state: State, event: events.HookError) -> None:
    notice = events.Notice(
        t=event.t,
        key=f"hook-error-{event.pid}",
        level=Level.WARNING,
        kind=NoticeKind.HOOK_FAILED,
        detail=": ".join(filter(None, (event.doing.replace(":", " "), event.text))),
        about=event.pid,
    )
    _notice(state, notice)


@folds(events.Requested)
def _requested(state: State, event: events.Requested) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.requested.append(event)


@folds(events.Initialised)
def _initialised(state: State, event: events.Initialised) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.initialised = event


@folds(events.Effective)
def _effective(state: State, event: events.Effective) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.effective[event.device] = event
        run = state.run
        if run and run.going and of_run(state, event.pid):
            run.effective[event.device] = event


@folds(events.Probe)
def _probe(state: State, event: events.Probe) -> None:
    if hooked := hooked_of(state, event.pid):
        if event.of_library:
            hooked.probe = event
        else:
            hooked.without_probe = event


@folds(events.Functions)
def _functions(state: State, event: events.Functions) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.steps.add(event)
        run = state.run if of_run(state, event.pid) else None
        if run and run.going and (run.steps is None or hooked.steps.calls > run.steps.calls):
            run.steps = hooked.steps


@folds(events.Census)
def _census(state: State, event: events.Census) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.census = event
        hooked.at_peak += [event] if hooked.windows and len(hooked.at_peak) < 2 else []
        # As the script ends, or while it is busy, there may be no time to find what an earlier look has found.
        late = event.hidden is events.Unseen.LATE and event.moment is events.CensusMoment.END
        cut = late or event.hidden is events.Unseen.BUSY or event.tensors is None
        before = hooked.look if cut else None
        if event.looked and not (before and before.found_by_path > event.found_by_path):
            hooked.look = event
        if event.window:
            hooked.of_windows.append(event)
            del hooked.of_windows[1 : -2 * WINDOWS_KEPT]  # each has two


@folds(events.OutOfMemory)
def _out_of_memory(state: State, event: events.OutOfMemory) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.out_of_memory.append(event)
        trends = {device: trend.copy() for device, trend in hooked.trends.items()}
        hooked.failure = Failure(event, surroundings(state, hooked), trends, hooked.look, hooked.census)
    if state.run and state.run.going:
        state.run.out_of_memory += 1
        state.run.ran_out.append(RanOut(event.t, _place(state, event)))


def _place(state: State, event: events.OutOfMemory) -> int | Literal["cpu"] | None:
    if event.device is None or is_cpu(event.device):
        return "cpu" if event.device else None
    device = device_of(state, event.pid, event.device)
    return device.info.index if device else None


@folds(events.Waiting)
def _waiting(state: State, event: events.Waiting) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.waiting = event


@folds(events.ScriptError)
def _script_error(state: State, event: events.ScriptError) -> None:
    if hooked := hooked_of(state, event.pid):
        hooked.error, hooked.at_end = event, surroundings(state, hooked)
        if not hooked.out_of_memory and any(words in event.message for words in NO_START):
            _out_of_memory(state, events.OutOfMemory(t=event.t, pid=event.pid, message=event.message))


@folds(events.Output)
def _output(state: State, event: events.Output) -> None:
    if run := _run_of(state, event.run):
        before = state.output[-1].text if state.output else ""
        for found in lines_of_exhaustion(before, event.text):
            _complain(run, events.AllocatorLine(t=event.t, pid=None, at=event.t, **found._asdict()))
    state.output.append(event)
    state.output_count += 1
    state.output_characters += len(event.text)
    while state.output_characters > OUTPUT_CHARACTERS and len(state.output) > 1:
        state.output_characters -= len(state.output.popleft().text)


@folds(events.AllocatorLine)
def _allocator_line(state: State, event: events.AllocatorLine) -> None:
    if state.run and event.pid is not None and of_run(state, event.pid):
        _complain(state.run, event)


_ONE_LINE_S = 3.0
"""A line that comes through the terminal and through the probe's file arrives twice within this time."""


def _complain(run: RunState, line: events.AllocatorLine) -> None:
    for index, known in enumerate(run.complaints):
        if _repeats(known, line):
            if line.pid is not None:
                run.complaints[index] = line
            return
    run.complaints.append(line)


def _repeats(one: events.AllocatorLine, other: events.AllocatorLine) -> bool:
    """Return whether the two may be the same line, seen in both places."""
    alike = (one.allocator, one.size, one.operation) == (other.allocator, other.size, other.operation)
    return alike and abs(one.at - other.at) < _ONE_LINE_S and (None in (one.pid, other.pid) or one.pid == other.pid)


@folds(events.Terminal)
def _terminal(state: State, event: events.Terminal) -> None:
    state.terminal = event


@folds(events.Notice)
def _notice(state: State, event: events.Notice) -> None:
    state.notices.pop(event.key, None)
    if event.kind is not None:
        state.notices[event.key] = event
    if len(state.notices) > NOTICES_KEPT:
        del state.notices[next(iter(state.notices))]
