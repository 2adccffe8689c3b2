"""The figures and settings of one run, to be compared with those of others, and the outcome of a session. Pure."""

from collections.abc import Iterable

import msgspec

from tfmemtop import events
from tfmemtop.events.machine import is_gpu, is_pinned
from tfmemtop.events.runs import Ending
from tfmemtop.placement import Placement
from tfmemtop.settings import Settings
from tfmemtop.state.history import Curve
from tfmemtop.state.model import RunState
from tfmemtop.state.program import lasting
from tfmemtop.state.steps import FunctionCounts, pace


class EffectiveSettings(msgspec.Struct, frozen=True):
    """The settings that TensorFlow uses in a run: on its GPUs, or on the CPU if there are none.

    ``chosen`` is what the user chose. Until TensorFlow has made its devices, ``settled`` is false and nothing else is
    known. ``growths`` has two values where devices differ. ``limits`` are bytes, one for each device with a limit.
    """

    chosen: Settings
    settled: bool = False
    on_gpu: bool = False
    growths: frozenset[bool] = frozenset()
    limits: tuple[int, ...] = ()
    allocators: tuple[str, ...] = ()

    @property
    def chosen_beside(self) -> Settings:
        """The settings that the user chose and that the other fields do not show."""
        # The CPU pool that the user chose is kept only if there are GPUs: without them, ``limits`` has it.
        cpu_pool = self.chosen.cpu_pool if self.on_gpu else None
        return msgspec.structs.replace(self.chosen, growth=None, memory_limit=None, allocator=None, cpu_pool=cpu_pool)


def effective_settings(run: RunState) -> EffectiveSettings:
    """Return the settings of *run*, as TensorFlow's devices last had them."""
    gpus = [device for name, device in run.effective.items() if is_gpu(name)]
    # If there are GPUs, the pool on the CPU is left out: it always grows, and has a limit of its own.
    devices = gpus or list(run.effective.values())
    return EffectiveSettings(
        chosen=run.settings,
        settled=bool(devices),
        on_gpu=bool(gpus),
        growths=frozenset(device.growth for device in devices if device.growth is not None),
        limits=tuple(device.limit for device in devices if device.limit is not None),
        allocators=tuple(sorted({device.allocator for device in devices if device.allocator})),
    )


class Past(msgspec.Struct, frozen=True):
    """The course of a run: its memory over the seconds since it ``started``, and the calls of its busiest function."""

    started: float
    curve: Curve
    course: FunctionCounts | None


class RunFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One run's figures. Sizes are bytes, ``None`` where not known; peaks are over the whole run.

    ``name`` is that of the recording, empty for a run of this session. Peaks are of the GPU that had most, all its
    logical devices together. ``fragmentation`` is the share of the pool's free bytes outside its largest free chunk,
    at the newest map before the end. ``first_step_s`` is the time from the run's start to the end of the first call of
    a ``tf.function``. ``steps`` are those of the busiest function; they are its calls (``unit``) if the number of steps
    in a call is not known. ``ending`` is ``None`` while the run is ``running``, if tfmemtop has ``left``
    it, and if its end was not seen. ``variables`` are those of
    the environment that the command line set. ``phases`` are the peaks in use of the script's phases, by name. ``past``
    is the course of the run.
    """

    name: str
    run: int
    argv: tuple[str, ...]
    settings: EffectiveSettings
    duration_s: float
    ending: Ending | None
    running: bool
    left: bool
    peak_in_use: int | None
    peak_pool: int | None
    peak_process_total: int | None
    fragmentation: float | None
    out_of_memory: int
    first_step_s: float | None = None
    unit: str = "steps"
    steps: int | None = None
    steps_per_s: float | None = None
    variables: dict[str, str]
    phases: dict[str, int] = {}
    past: Past

    @property
    def whole(self) -> bool:
        """Whether the run ended with exit code 0."""
        return self.ending is not None and self.ending.good

    @property
    def good(self) -> bool:
        """Whether the run ended with exit code 0, or still goes on."""
        return self.ending is None or self.ending.good


def figures(run: RunState, now: float, name: str = "", *, alive: bool = True) -> RunFigures:
    """Return the figures of *run*; *now* is the last moment known, in session seconds.

    *alive* is whether the session goes on at that moment.
    """
    last = run.ended if run.ended is not None else now
    steps = pace(run.steps, last) if run.steps else None
    first = run.steps.first_step if run.steps else None
    return RunFigures(
        name=name,
        run=run.run,
        argv=(run.notebook,) if run.notebook else lasting(run),
        settings=effective_settings(run),
        duration_s=round(max(0.0, last - run.started), 3),
        ending=run.ending,
        running=alive and run.going and not run.left,
        left=run.left,
        peak_in_use=run.peak_in_use,
        peak_pool=run.peak_pool,
        peak_process_total=run.peak_process_total,
        fragmentation=run.fragmentation,
        out_of_memory=run.out_of_memory or int(bool(run.crashed_on)),
        first_step_s=None if first is None else round(max(0.0, first - run.started), 3),
        unit=steps.unit if steps else "steps",
        steps=steps.count if steps else None,
        # Finer than it is told: of 10.1497, rounded twice, 10.2 would become.
        steps_per_s=round(steps.whole, 6) if steps and steps.whole is not None else None,
        variables=run.variables,
        phases=run.phase_peaks,
        past=Past(run.started, run.curve, run.steps.busiest if run.steps else None),
    )


TOLD_BY = (events.Run, events.RunEnd, events.Allocator, events.Outside)
"""The events that :func:`outcome` needs."""


class SessionOutcome(msgspec.Struct, frozen=True):
    """The last run of a session: its number, how it ended, and when, in seconds since the session began.

    ``peak_in_use`` is the highest of all runs on one device, in bytes, where known. ``kernel`` is true for a Jupyter
    kernel. Each start of a kernel is a session of its own. ``notebook`` is the file of its notebook, where known.
    """

    run: int | None = None
    ending: Ending | None = None
    ended: float | None = None
    peak_in_use: int | None = None
    kernel: bool = False
    notebook: str | None = None
    left: bool = False  # tfmemtop had not started it and no longer reads it, and it went on


class SessionFigures(msgspec.Struct, frozen=True):
    """A session. ``path``, and ``size`` in bytes, are those of its recording, ``None`` if there is none.

    Times are in seconds, ``started`` since 1970. ``duration_s`` is that to the last run's end. A session is ``going``
    as long as it can be attached to, or its recording is written.
    """

    name: str
    command: tuple[str, ...]
    started: float
    duration_s: float
    going: bool
    last: SessionOutcome
    path: str | None = None
    size: int | None = None
    placement: Placement | None = None

    @property
    def running(self) -> bool:
        """Whether its script has not ended."""
        return self.going and self.last.ending is None


def outcome(stream: Iterable[events.Event]) -> SessionOutcome:
    """Return the outcome of the session in *stream*. Only its events of the classes in :data:`TOLD_BY` are needed."""
    run: int | None = None
    ending: Ending | None = None
    ended: float | None = None
    peak: int | None = None
    left = False
    kernel, notebook = False, None
    for event in stream:
        match event:
            case events.Run():
                run, ending, ended, left = event.run, None, None, False
                kernel, notebook = event.kernel is not None, event.notebook
            case events.RunEnd():
                run, ending, ended = event.run, event.ending, event.t
            case events.Outside():
                left = event.state is events.OutsideState.LEFT
            case events.Allocator() if not is_pinned(event.device):
                peak = max((size for size in (peak, event.in_use, event.peak) if size is not None), default=None)
            case _:
                pass
    return SessionOutcome(run, ending, ended, peak, kernel, notebook, left)
