"""Two runs in one graph: each is a line with its own colour, its own stroke and its own mark.

In Braille the first line is solid and the second one is dashed. So they can be distinguished in one colour too, and
where one covers the other. In ASCII a line is made of its mark.
"""

from itertools import pairwise

from tfmemtop.state.comparable import Overlay, Trace
from tfmemtop.ui.draw.braille import DOTS
from tfmemtop.ui.draw.lines import Line, styled
from tfmemtop.ui.draw.palette import PLAIN, RUNS, Glyphs
from tfmemtop.ui.draw.scale import GUTTER, Places, Scale, ScaleChoice, axis, gutters, label_places, scale
from tfmemtop.ui.draw.window import span_text

_STYLES = {"0": RUNS[0], "1": RUNS[1], "2": PLAIN}  # by the run that a cell belongs to; 2: none
_SINCE = "since each run's start"
_MARK_EVERY = 14  # cells
_BOTH = "@"  # where two lines meet, if they are made of marks


def samples(width: int) -> int:
    """Return how many columns an overlay needs for a graph *width* cells wide."""
    return max(1, width - GUTTER) * 2


def swatch(which: int, glyphs: Glyphs) -> str:
    """Return a piece of the line of the first (0) or the second (1) run, for the legend; three cells."""
    mark = glyphs.runs[which]
    return mark * 3 if glyphs.ascii else f"─{mark}─" if which == 0 else f"╌{mark}╌"


def draw(overlay: Overlay, capacity: int | None, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return *height* lines of *width* cells, the last one the axis. *overlay* must have :func:`samples` columns.

    The scale goes from 0 to *capacity*, or to a half, a quarter, … of it into which all runs fit. It is logarithmic if
    a run needs a small part of *capacity* only: otherwise that run would be a flat line beside one that takes it all.
    """
    cells, rows = width - GUTTER, height - 1
    if cells < 1 or rows < 1:
        return []
    peaks = [trace.peak for trace in overlay.traces if trace.peak] or [0]
    chosen = scale(ScaleChoice.AUTO, min(peaks), max(peaks), capacity)
    canvas = _Canvas(cells, rows, chosen, glyphs)
    for which, trace in enumerate(overlay.traces):
        canvas.line(which, trace)
    for which, trace in enumerate(overlay.traces):
        canvas.marks(which, trace)
    left = gutters(chosen.figures(rows), rows, glyphs)
    return [*(left[row] + canvas.row(row) for row in range(rows)), _axis(overlay, chosen, cells, glyphs)]


class _Canvas:
    """Cells with the dots, or the marks, of both runs."""

    def __init__(self, cells: int, rows: int, scale: Scale, glyphs: Glyphs) -> None:
        self._cells, self._rows, self._scale, self._glyphs = cells, rows, scale, glyphs
        self._bits = [[[0] * cells for _ in range(rows)] for _ in range(2)]  # by run, row from the top, cell
        self._mark: dict[tuple[int, int], int] = {}

    def _dot(self, size: int, of: int) -> int:
        """Return which of *of* dots, counted from the bottom, stands for *size* bytes."""
        return max(0, self._scale.units(size, of) - 1)

    def line(self, which: int, trace: Trace) -> None:
        """Draw a line from reading to reading. A jump is drawn as a solid vertical line."""
        dots = [None if size is None else self._dot(size, self._rows * 4) for size in trace.heights[: self._cells * 2]]
        for column, (before, dot) in enumerate(pairwise([None, *dots])):
            if dot is None:
                continue
            jump = before is not None and abs(dot - before) > 1
            if which == 1 and not jump and column // 2 % 2 and not self._glyphs.ascii:
                continue  # a gap of the dashed line
            low, high = (min(before, dot), max(before, dot)) if jump and before is not None else (dot, dot)
            for each in range(low, high + 1):
                self._bits[which][self._rows - 1 - each // 4][column // 2] |= DOTS[column % 2][each % 4]

    def marks(self, which: int, trace: Trace) -> None:
        """Put a run's marks along its line at regular distances, different from the other run's, and at its end."""
        known = [column for column, size in enumerate(trace.heights[: self._cells * 2]) if size is not None]
        for column in known:
            cell, size = column // 2, trace.heights[column]
            here = cell % _MARK_EVERY == (3, 3 + _MARK_EVERY // 2)[which] and column < known[-1] - 8
            if size is not None and column % 2 == 0 and (here or column >= known[-1] - 1):
                self._mark[self._rows - 1 - self._dot(size, self._rows * 4) // 4, cell] = which

    def row(self, row: int) -> Line:
        """Return one line of cells as segments."""
        text, codes = [], []
        for cell in range(self._cells):
            first, second = self._bits[0][row][cell], self._bits[1][row][cell]
            owner = 2 if not (first or second) else int(bool(second))
            if (mark := self._mark.get((row, cell))) is not None and not (self._glyphs.ascii and first and second):
                text.append(self._glyphs.runs[mark])
                owner = mark
            elif owner == 2:
                text.append(" ")
            elif self._glyphs.ascii:
                text.append(_BOTH if first and second else self._glyphs.runs[owner])
            else:
                text.append(chr(0x2800 | first | second))
            codes.append(str(owner))
        return styled("".join(text), "".join(codes), _STYLES)


def _axis(overlay: Overlay, scale: Scale, cells: int, glyphs: Glyphs) -> Line:
    span = span_text(overlay.span_s)
    right = cells - len(span) - 2
    ends: list[Places] = [
        label_places(
            min(cells - 1, int(trace.ended_s / overlay.span_s * cells)),
            glyphs.tick,
            f"run {trace.run} ended",
            left=True,
        )
        for trace in overlay.traces
        if trace.ended_s is not None
    ]
    since: Places = ((1, f" {_SINCE} "),)
    scales: Places = ((right - len(scale.text) - 3, f" {scale.text} "), (len(_SINCE) + 4, f" {scale.text} "))
    return axis(cells, [((right, f" {span} "),), *ends, since, scales], [], glyphs, bottom=scale.bottom_figure)
