"""The rows of the runs: figures, settings, how each ended; and how two of them differ. Pure."""

from collections.abc import Mapping, Sequence

from rich.segment import Segment

from tfmemtop.reports.comparison_text import differing, how_it_ended, settings
from tfmemtop.state.figures import RunFigures
from tfmemtop.state.program import program
from tfmemtop.ui.draw.columns import Column, cells_of, figures, fitting_columns, names
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, GOOD, PLAIN, RUNS, WARNING, Glyphs
from tfmemtop.ui.draw.runs_graph import swatch
from tfmemtop.ui.draw.text import exactly, wrap
from tfmemtop.units import counted, format_duration, format_rate, format_short

_LEFT = 4  # cells of the mark and the blanks beside it
_WORDS_LEAST = 24
_END_FROM = 40
"""Cells for texts, from which part of them is for how the run ended; with fewer, all of them are for the settings."""


_COLUMNS: tuple[Column[RunFigures], ...] = (
    Column("RUN", 3, 9, lambda run: run.run),
    Column("DURATION", 9, 8, lambda run: run.duration_s, format_duration),
    Column("FIRST STEP", 10, 4, lambda run: run.first_step_s, format_duration),
    Column("STEPS/S", 7, 7, lambda run: run.steps_per_s, format_rate),
    Column("PEAK", 7, 9, lambda run: run.peak_in_use, format_short),
    Column("POOL", 7, 9, lambda run: run.peak_pool, format_short),
    Column("PROCESS", 7, 9, lambda run: run.peak_process_total, format_short),
    Column("FRAGM", 5, 5, lambda run: run.fragmentation, "{:.0%}".format),
)


def rows(runs: Sequence[RunFigures], marks: Mapping[int, int], chosen: int, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a heading, and a row for each run; the row with the index *chosen* is highlighted.

    *marks* contains the runs that are laid over one another: 0 or 1 by the run's number.
    """
    columns = fitting_columns(_COLUMNS, width - _LEFT - 1 - _WORDS_LEAST, least=4)
    room = max(0, width - _LEFT - 1 - sum(map(cells_of, columns)))
    share = room if room < _END_FROM else max(_WORDS_LEAST, room * 3 // 5)
    words = exactly("SETTINGS", share) + "HOW IT ENDED" * (share < room)
    lines: list[Line] = [[Segment(exactly(f"{'':{_LEFT}}{names(columns)}  {words}", width), BOLD)]]
    for index, run in enumerate(runs):
        here = index == chosen
        mark = marks.get(run.run)
        told = fit(settings(run, glyphs.dot), share - 2, glyphs)
        line = [
            Segment(" "),
            Segment(" " if mark is None else glyphs.runs[mark], PLAIN if mark is None else RUNS[mark]),
            Segment(f"  {figures(columns, run, glyphs)}  "),
            Segment(exactly(told, share), DIM),
        ]
        if share < room:
            end = exactly(fit(_end(run), room - share, glyphs), room - share)
            line.append(Segment(end, GOOD if run.good else WARNING))
        lines.append([Segment(segment.text, CHOSEN) for segment in line] if here else line)
    return lines


def at_length(run: RunFigures, width: int, glyphs: Glyphs) -> list[str]:
    """Return everything about one run, as text in lines of at most *width* cells."""
    words = [settings(run, glyphs.dot)]
    if run.first_step_s is not None:
        words.append(f"first step after {format_duration(run.first_step_s)}")
    if run.steps is not None:
        rate = "" if run.steps_per_s is None else f", {format_rate(run.steps_per_s)} a second"
        words.append(counted(run.steps, run.unit.rstrip("s")) + rate)
    told = f" {glyphs.dot} ".join([*words, _end(run), " ".join(program(run.argv))])
    return wrap(f"Run {run.run}: {told}", max(10, width))


def _end(run: RunFigures) -> str:
    """Return how the run ended, and how often it ran out of memory."""
    return how_it_ended(run) + (f", out of memory ×{run.out_of_memory}" if run.out_of_memory else "")


def legend(runs: Sequence[RunFigures], peaks: Sequence[str], width: int, glyphs: Glyphs) -> list[Line]:
    """Return a line for each run in the graph: its mark, how it differs from the other run, and its peak."""
    lines: list[Line] = []
    for which, run in enumerate(runs):
        others = runs[1 - which] if len(runs) > 1 else None
        words = f" {glyphs.dot} ".join([*differing(run, others), f"at most {peaks[which]}"])
        left = f"run {run.run}  "
        told = fit(words, max(4, width - 5 - len(left)), glyphs)
        lines.append([Segment(f" {swatch(which, glyphs)} ", RUNS[which]), Segment(left, BOLD), Segment(told)])
    return lines
