"""What a run without figures of its pools still waits for, or why it will have none. Pure."""

from enum import Enum, auto

import msgspec

from tfmemtop import events
from tfmemtop.frameworks import UsedFramework
from tfmemtop.state.lookup import once_per_revision
from tfmemtop.state.model import Hooked, ProcessState, State

SETTLED_S = 5.0
"""Seconds after TensorFlow has made its devices. Events of devices and pools arrive within one second; after this time,
no more will come."""

_BFC_ON_CPU = "TF_CPU_ALLOCATOR_USE_BFC"


class Stage(Enum):
    """How far the newest run has come before it has a pool, by its most advanced process, or why it gets none."""

    NO_RUN = auto()
    NOT_IMPORTED = auto()  # no process has begun to import TensorFlow
    OTHERS = auto()  # a process uses other frameworks, and none has begun to import TensorFlow
    NOT_INSIDE = auto()  # the hook cannot be loaded into any process
    IMPORTING = auto()
    IMPORTED = auto()  # the devices will be made at the first operation
    REFUSED = auto()  # TensorFlow raised an error instead of making its devices
    MADE = auto()  # TensorFlow has made its devices, and no pool has been read yet
    OUTSIDE = auto()  # it is read from outside; that has states of its own, which are no stages of a script
    NO_POOL = auto()  # TensorFlow computes on the CPU, and allocates there by malloc


_BY_PROGRESS = (Stage.OTHERS, Stage.IMPORTING, Stage.IMPORTED, Stage.REFUSED, Stage.MADE, Stage.NO_POOL)


class Waiting(msgspec.Struct, frozen=True):
    """The stage of the newest run, which it reached ``since_s`` seconds ago (``None`` where not known).

    ``tensorflow`` is TensorFlow's version, once known. ``over``: the run has ended, so that nothing more comes.
    ``pool_chosen``: the user gave the CPU a pool. ``absence`` is the reason why the hook is not in the process.
    ``outside`` is how far the reading of a process has come that tfmemtop did not start. ``frameworks`` are those that
    the process has imported beside TensorFlow.
    """

    stage: Stage
    since_s: float | None = None
    tensorflow: str | None = None
    over: bool = False
    pool_chosen: bool = False
    absence: events.HookAbsence | None = None
    outside: events.Outside | None = None
    frameworks: tuple[UsedFramework, ...] = ()


@once_per_revision
def waiting(state: State) -> Waiting | None:
    """Return what the newest run waits for; ``None`` once it has figures of a pool."""
    run = state.run
    if run is None:
        return Waiting(Stage.NO_RUN)
    mine = [process for process in state.processes.values() if process.seen.run == run.run]
    if (outside := _outside(mine)) is not None:
        return Waiting(Stage.OUTSIDE, over=run.ended is not None, outside=outside)
    inside = [process.hooked for process in mine if process.hooked]
    hooked = [one for one in inside if not one.ended] or inside
    if any(one.allocators or one.frameworks for one in inside):
        return None
    chosen, over = _gives_cpu_a_pool(run.settings.environment) or _chosen(state), run.ended is not None
    if not hooked:
        absence = next((process.seen.hook_absence for process in mine if process.seen.hook_absence), None)
        stage = Stage.NOT_INSIDE if absence else Stage.NOT_IMPORTED
        return Waiting(stage, None if over else state.now - run.started, None, over, chosen, absence)
    furthest = max(hooked, key=lambda one: _BY_PROGRESS.index(_stage(state, one)))
    stage = _stage(state, furthest)
    made = furthest.initialised
    since = made.t if made else furthest.hello.t
    since_s = None if over else max(0.0, state.now - since)
    frameworks = tuple(furthest.hello.frameworks)
    return Waiting(stage, since_s, furthest.hello.tensorflow, over, chosen, frameworks=frameworks)


def _outside(mine: list[ProcessState]) -> events.Outside | None:
    """Return the newest state of the process that is read from outside; ``None`` once it has figures."""
    if any(process.hooked and process.hooked.allocators for process in mine):
        return None
    return next((process.outside for process in mine if process.outside), None)


def _stage(state: State, hooked: Hooked) -> Stage:
    made = hooked.initialised
    if made is not None and made.error:
        return Stage.REFUSED
    if made is not None and not hooked.effective:
        # Where the driver lists a GPU, TensorFlow may use it, and its pool cannot be read yet.
        at_once = not state.devices and not _gives_cpu_a_pool(made.variables)
        return Stage.NO_POOL if at_once or _should_be_known(state, hooked, made) else Stage.MADE
    if made is not None or hooked.effective:
        return Stage.MADE
    if hooked.hello.tensorflow:
        return Stage.IMPORTED
    return Stage.OTHERS if hooked.hello.frameworks and not hooked.hello.tensorflow_path else Stage.IMPORTING


def _should_be_known(state: State, hooked: Hooked, made: events.Initialised) -> bool:
    going_on = hooked.probe is not None and hooked.probe.state.coming
    return not going_on and state.now >= made.t + SETTLED_S


def _chosen(state: State) -> bool:
    """Return whether the user gave TensorFlow's CPU device a pool by tfmemtop's own settings."""
    settings = state.run.settings if state.run else None
    if settings is None:
        return False
    alone = not state.devices and (settings.memory_limit is not None or settings.allocator == "bfc")
    return settings.cpu_pool is not None or alone


def _gives_cpu_a_pool(variables: dict[str, str]) -> bool:
    return variables.get(_BFC_ON_CPU, "").lower() in ("true", "1")
