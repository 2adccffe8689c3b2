"""The figures of one run, to be compared with those of other runs. Pure."""

import msgspec

from tfmemtop.events.runs import Ending
from tfmemtop.state.effective_settings import EffectiveSettings, effective_settings
from tfmemtop.state.history import Curve
from tfmemtop.state.model import RunState
from tfmemtop.state.program import lasting
from tfmemtop.state.steps import FunctionCounts, pace


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
        steps_per_s=round(steps.whole, 3) if steps and steps.whole is not None else None,
        variables=run.variables,
        phases=run.phase_peaks,
        past=Past(run.started, run.curve, run.steps.busiest if run.steps else None),
    )
