"""What two runs have in common, so that they can be compared: as many steps, or as many seconds. Pure."""

from dataclasses import dataclass, replace
from enum import Enum, auto

from tfmemtop.state.figures import RunFigures
from tfmemtop.state.overlay import Measure

ENOUGH_STEPS, ENOUGH_S = 10, 3.0
"""A pace over less than that says little: the first steps are slower. As many seconds are the least to be compared."""

_EQUAL = 0.02


class Basis(Enum):
    """What of two runs is compared."""

    WHOLE = auto()  # both did all of their work
    STEPS = auto()  # as many steps, or calls, of the same function
    SECONDS = auto()  # as many seconds since memory was first held
    TOO_SHORT = auto()  # all of each, since one held memory for a moment only
    NOTHING = auto()


@dataclass(frozen=True, slots=True)
class Part:
    """One run as far as it is compared. Sizes are bytes, ``None`` where not known; ``span_s`` is its length.

    For a part in steps that is from the first step on, else from the first reading on.
    """

    span_s: float
    peak_in_use: int | None
    peak_pool: int | None
    peak_process_total: int | None
    steps_per_s: float | None


@dataclass(frozen=True, slots=True)
class Common:
    """Both runs as far as they are compared; ``steps`` in ``unit`` if these are what they have in common."""

    basis: Basis
    first: Part
    second: Part
    steps: int | None = None
    unit: str = "steps"


def common(first: RunFigures, second: RunFigures) -> Common:
    """What can be compared of the two."""
    if first.whole and second.whole and not _unequal_steps(first, second):
        return Common(Basis.WHOLE, _whole(first), _whole(second))
    return _same_steps(first, second) or _same_seconds(first, second)


def _unequal_steps(first: RunFigures, second: RunFigures) -> bool:
    """Whether the same command has made more steps in one of them: it stopped early, or went on for a given time."""
    a, b = first.steps, second.steps
    return first.argv == second.argv and a is not None and b is not None and abs(a - b) > max(a, b) * _EQUAL


def _whole(run: RunFigures) -> Part:
    return Part(run.duration_s, run.peak_in_use, run.peak_pool, run.peak_process_total, run.steps_per_s)


def _without_pace(run: RunFigures) -> Part:
    return replace(_whole(run), steps_per_s=None)


def _same_steps(first: RunFigures, second: RunFigures) -> Common | None:
    """As many steps as the one has made that made fewer; ``None`` where they do not do the same ones."""
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


def _until_calls(run: RunFigures, calls: int) -> Part | None:
    course, started = run.past.course, run.past.started
    if course is None or run.first_step_s is None or calls < course.first.calls:
        return None
    until = course.time_of(calls)
    counted_s, counted = until - course.first.t, calls - course.first.calls
    enough = counted >= ENOUGH_STEPS and counted_s >= ENOUGH_S
    pace = counted * (course.function.steps or 1) / counted_s if enough else None
    return _part(run, until - started - run.first_step_s, until - started, pace)


def _same_seconds(first: RunFigures, second: RunFigures) -> Common:
    """As many seconds since memory was first held as the shorter one lasted; all of each where these are too few."""
    begins = [run.past.curve.begin for run in (first, second)]
    spans = [run.duration_s - begin for run, begin in zip((first, second), begins, strict=True) if begin is not None]
    span_s = min(spans) if len(spans) == len(begins) else 0.0
    if 0 < span_s < ENOUGH_S:
        return Common(Basis.TOO_SHORT, _without_pace(first), _without_pace(second))
    basis = Basis.SECONDS if span_s else Basis.NOTHING
    a, b = (
        _part(run, span_s, (begin or 0.0) + span_s, None) for run, begin in zip((first, second), begins, strict=True)
    )
    return Common(basis, a, b)


def _part(run: RunFigures, span_s: float, until: float, pace: float | None) -> Part:
    """The part of *run* up to *until* seconds after its start; a figure is not known of it that is not of the whole."""

    def highest(measure: Measure, of_whole: int | None) -> int | None:
        return None if of_whole is None else run.past.curve.highest(measure.value, until)

    return Part(
        max(0.0, span_s),
        highest(Measure.IN_USE, run.peak_in_use),
        highest(Measure.POOL, run.peak_pool),
        highest(Measure.PROCESS, run.peak_process_total),
        pace,
    )
