"""H: the runs of this session, a graph of two of them laid over one another, and their difference in words."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events as textual_events
from textual.binding import Binding, BindingType
from textual.geometry import clamp

from tfmemtop.experiments.session.session import Session
from tfmemtop.reports.comparison_text import differing, how_it_ended, name, sentences, settings
from tfmemtop.state.comparable import Measure, Overlay, measures, overlay
from tfmemtop.state.figures import RunFigures, figures
from tfmemtop.state.model import RunState
from tfmemtop.state.program import program
from tfmemtop.ui.draw.braille import DOTS, joined
from tfmemtop.ui.draw.columns import Column, cells_of, fitting_columns, names
from tfmemtop.ui.draw.columns import figures as figures_of
from tfmemtop.ui.draw.glyphs import ARROWS, DOT, LINE, RUN_MARKS, TICK
from tfmemtop.ui.draw.lines import Line, fit, paragraph, styled
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, GOOD, PLAIN, RUNS, WARNING
from tfmemtop.ui.draw.scale import GUTTER, Places, Scale, ScaleChoice, axis, gutters, label_places, scale
from tfmemtop.ui.draw.text import exactly, wrap
from tfmemtop.ui.draw.window import span_text
from tfmemtop.ui.screens.full_screen import CoveringPanel
from tfmemtop.units import UNKNOWN, counted, format_bytes, format_duration, format_rate, format_short

_LIST_LEAST = 2
_ONE_LINE_FROM = 160
_ONE_RUN = "There is one run so far. The next one is drawn over it here, whatever its settings are."


class RunsPanel(CoveringPanel):
    """The list of runs, the graph and the words. The graph shows two runs: those picked, else the newest two."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("H", "close", show=False),
        Binding("space,enter", "pick", show=False),
        Binding("m", "measure", show=False),
    ]
    wheel = 1

    def __init__(self, session: Session, *, braille: bool = True) -> None:
        super().__init__(session)
        self._braille = braille
        self.picked: list[int] = []  # numbers of the runs picked, the last one at the end
        self._chosen: int | None = None  # number of the run under the cursor; None: the newest
        self._measure: Measure | None = None
        self._spots = range(0)  # lines of the panel on which the rows are

    # What is shown.

    @property
    def runs(self) -> list[RunState]:
        """All runs, oldest first; those of other sessions come before those of this one."""
        return [*sorted(self.session.earlier.values(), key=lambda run: run.run), *self.state.runs]

    @property
    def at(self) -> int:
        """The index of the run under the cursor: the newest until it is moved."""
        runs = self.runs
        return next((i for i, run in enumerate(runs) if run.run == self._chosen), len(runs) - 1)

    @property
    def pair(self) -> list[RunState]:
        """The runs that are laid over one another, the earlier first; only one if there is no other."""
        runs = self.runs
        wanted = [run for run in runs if run.run in self.picked]
        # A single picked run is compared with the newest other one. If none is picked, the newest two are compared.
        others = [run for run in reversed(runs) if run not in wanted]
        return sorted((wanted + others)[:2], key=lambda run: run.run)

    @property
    def measure(self) -> Measure | None:
        """The measure that the graph shows; ``None`` while none is known."""
        known = measures(self.pair)
        return self._measure if self._measure in known else next(iter(known), None)

    @property
    def next_measure(self) -> Measure | None:
        """The measure that comes next; ``None`` if there is no other."""
        known = measures(self.pair)
        if len(known) < 2 or self.measure is None:
            return None
        return known[(known.index(self.measure) + 1) % len(known)]

    def build(self, width: int, height: int) -> list[Line]:
        runs = self.runs
        title = f"Runs of this {'kernel' if any(run.kernel for run in runs) else 'session'}"
        lines = [self.title_line(width, title, counted(len(runs), "run"))]
        self._spots = range(0)
        if not runs:
            return [*lines, [], [Segment("  No script has been started: tfmemtop only watches.", DIM)]]
        found = [figures(run, self.state.now) for run in runs]
        laid_over = self.pair
        pair = [found[runs.index(run)] for run in laid_over]
        legend = _legend(pair, self._peaks(laid_over), width)
        words = self._words(pair, width)
        length = 1 if width >= _ONE_LINE_FROM else 2
        room = height - 3 - length - len(legend) - len(words)
        lines += self._list(found, pair, width, max(_LIST_LEAST, room * 2 // 5))
        told = _at_length(found[self.at], width - 2)
        lines += [[Segment(" " + line, DIM)] for line in [*told, *[""] * length][:length]]
        measure = self.measure
        title = " and ".join(name(run) for run in pair) + (f": {measure.words}" if measure else "")
        lines.append(self.title_line(width, title[:1].upper() + title[1:]))
        lines += self._graph(laid_over, width, max(0, height - len(lines) - len(legend) - len(words)))
        return lines + legend + words

    def _list(self, found: list[RunFigures], pair: list[RunFigures], width: int, most: int) -> list[Line]:
        """Return the heading and at most *most* rows, the one under the cursor among them."""
        marks = {run.run: which for which, run in enumerate(pair)}
        heading, *rows = _rows(found, marks, self.at, width)
        seen = self.in_view(len(rows), most, self.at)
        self._spots = range(2, 2 + len(seen))
        return [heading, *rows[seen.start : seen.stop]]

    def _graph(self, pair: list[RunState], width: int, height: int) -> list[Line]:
        measure = self.measure
        if measure is None:
            whose = "these runs" if len(pair) > 1 else "this run"
            return ([[Segment(f"  no memory of {whose} is known yet", DIM)]] + [[]] * height)[:height]
        laid = overlay(pair, measure, self.state.now, _samples(width))
        return _drawn(laid, self._capacity(), width, height, self._braille)

    def _capacity(self) -> int | None:
        """Return the most bytes that a run can hold: the largest GPU's memory, or ``None`` without a GPU."""
        totals = [device.info.total for device in self.state.devices.values()]
        return max((total for total in totals if total is not None), default=None)

    def _peaks(self, pair: list[RunState]) -> list[str]:
        measure = self.measure
        return [format_bytes(measure.peak(run)) if measure else UNKNOWN for run in pair]

    def _words(self, pair: list[RunFigures], width: int) -> list[Line]:
        if len(pair) < 2:
            return paragraph(_ONE_RUN, width, DIM)
        lines: list[Line] = []
        empty = [name(run) for run in pair if not (run.peak_in_use or run.peak_process_total)]
        told = [f"No memory has been seen of {' and '.join(empty)} yet."] if empty else sentences(*pair)
        for index, sentence in enumerate(told):
            lines += paragraph(sentence, width, PLAIN if index else BOLD)
        return lines

    # What keys and the mouse do.

    def move(self, count: int) -> None:
        """Move the cursor by *count* runs."""
        if runs := self.runs:
            self._chosen = runs[clamp(self.at + count, 0, len(runs) - 1)].run
            self.redraw()

    def action_pick(self) -> None:
        """Pick the run under the cursor for the graph, or undo that. A third run replaces the one picked first."""
        if runs := self.runs:
            number = runs[self.at].run
            if number in self.picked:
                self.picked.remove(number)
            else:
                self.picked = [*self.picked, number][-2:]
            self.changed()

    def action_measure(self) -> None:
        """Show the next of those that are known: process total, pool, in use."""
        self._measure = self.next_measure or self._measure
        self.changed()

    def on_click(self, click: textual_events.Click) -> None:
        if click.y in self._spots:
            self._chosen = self.runs[self.top + click.y - self._spots.start].run
            self.action_pick()

    def hints(self) -> list[tuple[str, str]]:
        hints = []
        if len(self.runs) > 1:
            # In a replay, Space pauses or plays on every screen.
            hints += [(ARROWS, "run"), ("Enter" if self.session.replay else "Space", "lay over")]
        if (measure := self.next_measure) is not None:
            hints.append(("m", measure.words))
        if self.session.may_change:
            hints += [("R", "relaunch"), ("G", "growth"), ("L", "limit"), ("A", "allocator")]
        return hints


# The rows of the runs: figures, settings, how each ended; and how two of them differ.

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


def _rows(runs: Sequence[RunFigures], marks: Mapping[int, int], chosen: int, width: int) -> list[Line]:
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
        told = fit(settings(run), share - 2)
        line = [
            Segment(" "),
            Segment(" " if mark is None else RUN_MARKS[mark], PLAIN if mark is None else RUNS[mark]),
            Segment(f"  {figures_of(columns, run)}  "),
            Segment(exactly(told, share), DIM),
        ]
        if share < room:
            end = exactly(fit(_end(run), room - share), room - share)
            line.append(Segment(end, GOOD if run.good else WARNING))
        lines.append([Segment(segment.text, CHOSEN) for segment in line] if here else line)
    return lines


def _at_length(run: RunFigures, width: int) -> list[str]:
    """Return everything about one run, as text in lines of at most *width* cells."""
    words = [settings(run)]
    if run.first_step_s is not None:
        words.append(f"first step after {format_duration(run.first_step_s)}")
    if run.steps is not None:
        rate = "" if run.steps_per_s is None else f", {format_rate(run.steps_per_s)} a second"
        words.append(counted(run.steps, run.unit.rstrip("s")) + rate)
    told = f" {DOT} ".join([*words, _end(run), " ".join(program(run.argv))])
    return wrap(f"Run {run.run}: {told}", max(10, width))


def _end(run: RunFigures) -> str:
    """Return how the run ended, and how often it ran out of memory."""
    return how_it_ended(run) + (f", out of memory ×{run.out_of_memory}" if run.out_of_memory else "")


def _legend(runs: Sequence[RunFigures], peaks: Sequence[str], width: int) -> list[Line]:
    """Return a line for each run in the graph: its mark, how it differs from the other run, and its peak."""
    lines: list[Line] = []
    for which, run in enumerate(runs):
        others = runs[1 - which] if len(runs) > 1 else None
        words = f" {DOT} ".join([*differing(run, others), f"at most {peaks[which]}"])
        left = f"run {run.run}  "
        told = fit(words, max(4, width - 5 - len(left)))
        lines.append([Segment(f" {LINE}{RUN_MARKS[which]}{LINE} ", RUNS[which]), Segment(left, BOLD), Segment(told)])
    return lines


# The graph: each of two runs is a line with its own colour and its own mark. Without Braille it is made of its mark.

_STYLES = {"0": RUNS[0], "1": RUNS[1], "2": PLAIN}  # by the run that a cell belongs to; 2: none
_SINCE = "since each run's start"
_MARK_EVERY = 14  # cells


def _samples(width: int) -> int:
    """Return how many columns an overlay needs for a graph *width* cells wide."""
    return max(1, width - GUTTER) * 2


def _drawn(laid: Overlay, capacity: int | None, width: int, height: int, braille: bool) -> list[Line]:
    """Return *height* lines of *width* cells, the last one the axis. *laid* must have :func:`_samples` columns.

    The scale goes from 0 to *capacity*, or to a half, a quarter, … of it into which all runs fit. It is logarithmic if
    a run needs a small part of *capacity* only: otherwise that run would be a flat line beside one that takes it all.
    """
    cells, rows = width - GUTTER, height - 1
    if cells < 1 or rows < 1:
        return []
    peaks = [trace.peak for trace in laid.traces if trace.peak] or [0]
    chosen = scale(ScaleChoice.AUTO, min(peaks), max(peaks), capacity)
    text, codes = [[" "] * cells for _ in range(rows)], [["2"] * cells for _ in range(rows)]

    def draw(dot: int, column: int, which: int, drawn: str) -> None:
        row, cell = rows - 1 - dot // 4, column // 2
        if drawn > "\u2800" and text[row][cell] > "\u2800":  # what the other run, or the left half, has there stays
            drawn = chr(ord(drawn) | ord(text[row][cell]))
        text[row][cell], codes[row][cell] = drawn, str(which)

    courses = [
        [None if size is None else max(0, chosen.units(size, rows * 4) - 1) for size in trace.heights[: cells * 2]]
        for trace in laid.traces
    ]
    for which, dots in enumerate(courses):
        for column, line in enumerate(joined(dots)):
            for dot in line:
                draw(dot, column, which, chr(0x2800 | DOTS[column % 2][dot % 4]) if braille else RUN_MARKS[which])
    for which, dots in enumerate(courses):
        known = [(column, dot) for column, dot in enumerate(dots) if dot is not None]
        for column, dot in known:
            if column == known[-1][0] or column % (2 * _MARK_EVERY) == which * _MARK_EVERY:
                draw(dot, column, which, RUN_MARKS[which])
    left = gutters(chosen.figures(rows), rows)
    area = (styled("".join(text[row]), "".join(codes[row]), _STYLES) for row in range(rows))
    return [*([*figure, *line] for figure, line in zip(left, area, strict=True)), _axis(laid, chosen, cells)]


def _axis(laid: Overlay, chosen: Scale, cells: int) -> Line:
    span = span_text(laid.span_s)
    right = cells - len(span) - 2
    ends: list[Places] = [
        label_places(min(cells - 1, int(trace.ended_s / laid.span_s * cells)), TICK, f"run {trace.run} ended")
        for trace in laid.traces
        if trace.ended_s is not None
    ]
    since: Places = ((1, f" {_SINCE} "),)
    scales: Places = ((right - len(chosen.text) - 3, f" {chosen.text} "), (len(_SINCE) + 4, f" {chosen.text} "))
    return axis(cells, [((right, f" {span} "),), *ends, since, scales], [], bottom=chosen.bottom_figure)
