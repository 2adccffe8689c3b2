"""Runs side by side: the parts of two that can be compared, by steps or seconds; and runs in one graph. Pure."""

from collections.abc import Sequence
from enum import Enum, auto

import msgspec
from msgspec.structs import replace

from tfmemtop.state.figures import RunFigures
from tfmemtop.state.model import RunState

ENOUGH_STEPS, ENOUGH_S = 10, 3.0
"""A pace over fewer steps or seconds is not meaningful: the first steps are slower.

``ENOUGH_S`` is also the least number of seconds of two runs that are compared.
"""

_EQUAL = 0.02


class Basis(Enum):
    """Which parts of two runs are compared."""

    WHOLE = auto()  # both whole runs: both did all of their work
    STEPS = auto()  # the same number of steps, or calls, of the same function
    SECONDS = auto()  # the same number of seconds since memory was first held
    TOO_SHORT = auto()  # both whole runs, because one of them held memory only for a moment
    NOTHING = auto()  # no part: one of the runs never held memory, as far as is known


class Common(msgspec.Struct, frozen=True):
    """The compared parts of both runs. If they are compared by steps, ``steps`` is their number, in ``unit``.

    ``first`` and ``second`` have the peaks and the speed of the part. Their ``duration_s`` is its length: since the
    first step for a part in steps, since memory was first held for one in seconds.
    """

    basis: Basis
    first: RunFigures
    second: RunFigures
    steps: int | None = None
    unit: str = "steps"


def common(first: RunFigures, second: RunFigures) -> Common:
    """Return the parts of the two runs that can be compared."""
    if first.whole and second.whole and not _unequal_steps(first, second):
        return Common(Basis.WHOLE, first, second)
    return _same_steps(first, second) or _same_seconds(first, second)


def _unequal_steps(first: RunFigures, second: RunFigures) -> bool:
    """Return whether the same command made more steps in one run than in the other, by more than 2 %.

    Then it stopped early in one of them, or it runs for a given time, not for a given number of steps.
    """
    a, b = first.steps, second.steps
    return first.argv == second.argv and a is not None and b is not None and abs(a - b) > max(a, b) * _EQUAL


def _same_steps(first: RunFigures, second: RunFigures) -> Common | None:
    """Compare as many steps as the run with fewer steps made; ``None`` where the runs' steps are not the same."""
    a, b = first.past.course, second.past.course
    if a is None or b is None or first.argv != second.argv:
        return None
    if (a.function.name, a.function.steps) != (b.function.name, b.function.steps):
        return None
    calls = min(a.last.calls, b.last.calls)
    parts = _until_calls(first, calls), _until_calls(second, calls)
    if parts[0] is None or parts[1] is None:
        return None
    return Common(Basis.STEPS, parts[0], parts[1], calls * (a.function.steps or 1), first.unit)


def _until_calls(run: RunFigures, calls: int) -> RunFigures | None:
    course, started = run.past.course, run.past.started
    if course is None or run.first_step_s is None or calls < course.first.calls:
        return None
    until = course.time_of(calls)
    counted_s, counted = until - course.first.t, calls - course.first.calls
    enough = counted >= ENOUGH_STEPS and counted_s >= ENOUGH_S
    pace = counted * (course.function.steps or 1) / counted_s if enough else None
    return _part(run, until - started - run.first_step_s, until - started, pace)


def _same_seconds(first: RunFigures, second: RunFigures) -> Common:
    """Compare the first seconds since memory was first held, as many as the shorter run has.

    If these are too few, compare the whole runs.
    """
    begins = [run.past.curve.begin for run in (first, second)]
    spans = [run.duration_s - begin for run, begin in zip((first, second), begins, strict=True) if begin is not None]
    span_s = min(spans) if len(spans) == len(begins) else 0.0
    if 0 < span_s < ENOUGH_S:
        return Common(Basis.TOO_SHORT, replace(first, steps_per_s=None), replace(second, steps_per_s=None))
    basis = Basis.SECONDS if span_s else Basis.NOTHING
    a, b = (
        _part(run, span_s, (begin or 0.0) + span_s, None) for run, begin in zip((first, second), begins, strict=True)
    )
    return Common(basis, a, b)


def _part(run: RunFigures, span_s: float, until: float, pace: float | None) -> RunFigures:
    """Return the part of *run* up to *until* seconds after its start.

    A figure that is not known of the whole run is not known of the part either.
    """

    def highest(measure: Measure) -> int | None:
        return None if measure.peak(run) is None else run.past.curve.highest(measure.value, until)

    return replace(
        run,
        duration_s=max(0.0, span_s),
        peak_in_use=highest(Measure.IN_USE),
        peak_pool=highest(Measure.POOL),
        peak_process_total=highest(Measure.PROCESS),
        steps_per_s=pace,
    )


_SPANS_S = (
    *(10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1200, 1800, 2700),
    *(3600 * hours for hours in (1, 1.5, 2, 3, 4, 6, 9, 12, 18, 24, 36, 48, 72, 96, 144)),
)
_LONGEST_STEP_S = 7 * 86_400.0


class Measure(Enum):
    """The figure of a run that is drawn. The value is the number of its boundary in a run's curve."""

    IN_USE = 0
    POOL = 1
    PROCESS = 2

    @property
    def words(self) -> str:
        """The name of the measure for people."""
        return ("in use", "pool", "process total")[self.value]

    def peak(self, run: RunState | RunFigures) -> int | None:
        """Return the highest value of this measure in *run*, in bytes; ``None`` where it is not known."""
        return (run.peak_in_use, run.peak_pool, run.peak_process_total)[self.value]


class Trace(msgspec.Struct, frozen=True):
    """One run in the overlay.

    ``heights`` are bytes by column, ``None`` where nothing was read. ``ended_s`` is the run's end in seconds after its
    start, if it has ended.
    """

    run: int
    heights: tuple[int | None, ...]
    peak: int
    ended_s: float | None


class Overlay(msgspec.Struct, frozen=True):
    """Runs on one scale of time, 0 to ``span_s`` seconds since each one's start."""

    measure: Measure
    span_s: float
    traces: tuple[Trace, ...]


def measures(runs: Sequence[RunState]) -> list[Measure]:
    """Return the measures that are known of all *runs* with any memory so far, the widest measure first."""
    begun = [run for run in runs if any(measure.peak(run) for measure in Measure)]
    return [measure for measure in reversed(Measure) if begun and all(measure.peak(run) is not None for run in begun)]


def overlay(runs: Sequence[RunState], measure: Measure, now: float, columns: int) -> Overlay:
    """Return *runs* in one graph of *columns* columns; *now* is in session seconds."""
    ends = [(run.ended if run.ended is not None else now) - run.started for run in runs]
    span_s = span(max(ends, default=0.0))
    traces = tuple(
        Trace(
            run.run,
            tuple(run.curve.columns(span_s / columns, columns, measure.value)),
            measure.peak(run) or 0,
            None if run.going else end,
        )
        for run, end in zip(runs, ends, strict=True)
    )
    return Overlay(measure, span_s, traces)


def span(longest_s: float) -> float:
    """Return a round number of seconds, at least *longest_s*: as a scale it seldom changes while a run goes on."""
    steps = -(-longest_s // _LONGEST_STEP_S)
    return next((float(step) for step in _SPANS_S if step >= longest_s), steps * _LONGEST_STEP_S)
