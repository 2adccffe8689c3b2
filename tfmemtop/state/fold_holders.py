"""The fold of recorded allocations: windows, traces, the script's lines, and XLA's reports."""

from tfmemtop import events
from tfmemtop.state.fold_memory import with_device
from tfmemtop.state.handlers import folds
from tfmemtop.state.lookup import hooked_of, of_run
from tfmemtop.state.model import CLUSTERS_KEPT, LINES_KEPT, PoolWindows, State


@folds(events.Holders)
def _holders(state: State, event: events.Holders) -> None:
    if hooked := with_device(state, event.pid, event.device):
        windows = hooked.windows.setdefault(event.device, PoolWindows())
        if windows.first is None:
            windows.first = event
        if not event.is_missing and (windows.highest is None or event.peak >= windows.highest.peak):
            windows.highest = event
        windows.newest.append(event)


@folds(events.Trace)
def _trace(state: State, event: events.Trace) -> None:
    if hooked := with_device(state, event.pid, event.device):
        parts = hooked.windows.setdefault(event.device, PoolWindows()).trace
        if event.part == 0:
            parts.clear()
        parts.append(event)


@folds(events.Replayed)
def _replayed(state: State, event: events.Replayed) -> None:
    if hooked := with_device(state, event.pid, event.device):
        hooked.windows.setdefault(event.device, PoolWindows()).replayed = event
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
