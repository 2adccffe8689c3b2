"""Runs in one graph: the memory of each over the seconds since its own start."""

from collections.abc import Sequence
from enum import Enum

import msgspec

from tfmemtop.state.figures import RunFigures
from tfmemtop.state.model import RunState

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
