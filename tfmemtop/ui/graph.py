"""The history graph of a device: a stacked area whose columns hold every peak.

Columns of cells stand at multiples of their width in time: once complete they never change, are
worked out once and from then on only move left. A frame costs the same however long the session.
"""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from rich.segment import Segment

from tfmemtop.state.history import History
from tfmemtop.state.views import DevicePanel
from tfmemtop.ui.area import STYLES, Moments, Painter
from tfmemtop.ui.lines import Line
from tfmemtop.ui.palette import DIM, LIMIT, PLAIN, RULE, Glyphs
from tfmemtop.units import format_short

SPANS = (
    (60.0, "1 min"),
    (300.0, "5 min"),
    (900.0, "15 min"),
    (3600.0, "1 h"),
    (21_600.0, "6 h"),
    (86_400.0, "24 h"),
    (259_200.0, "3 d"),
)
"""What a graph can span: seconds, and how they are said."""

_GUTTER = 8  # cells at the left for the scale's figures
_NO_GUTTER_BELOW = 32
_RUN = re.compile(r"(.)\1*")


class Scale(Enum):
    """What the top of a graph stands for, as the axis says it."""

    CAPACITY = "capacity"
    USED = "highest use"
    IN_USE = "highest in use"


@dataclass(frozen=True)
class Mark:
    """A moment to be marked, in session seconds, and its name."""

    t: float
    name: str


class Graph:
    """One device's graph, with what it need not work out again."""

    def __init__(self, glyphs: Glyphs, braille: bool) -> None:
        self._glyphs = glyphs
        self._braille = braille and not glyphs.ascii
        self._history: History | None = None
        self._window: tuple[float, int] = (0.0, 0)  # span in seconds, cells
        self._complete: deque[Moments] = deque()
        self._next = 0  # number of the first column that is not yet complete
        self._painter: Painter | None = None
        self._painted = 0  # number of the first column not yet painted
        self._texts: list[str] = []  # the complete columns' rows, top first
        self._codes: list[str] = []  # the styles of their cells

    def build(
        self, panel: DevicePanel, now: float, marks: Sequence[Mark], span: int, scale: Scale, width: int, height: int
    ) -> list[Line]:
        """*height* lines of *width* cells: the area up to *now*, over an axis that says *span* and *scale*.

        *span* is an index of :data:`SPANS`; fewer than two lines show nothing.
        """
        gutter = _GUTTER if width >= _NO_GUTTER_BELOW else 0
        cells, rows = width - gutter, height - 1
        if cells < 1 or rows < 1:
            return []
        span_s = SPANS[span][0]
        open_columns = self._follow(panel.history, span_s, cells, now)
        top = self._top(panel, scale, open_columns)
        marked = {int(min(mark.t, now) / (span_s / cells)): mark.name for mark in marks}
        painter = Painter(self._glyphs, self._braille, panel.kinds, rows, top, panel.limit, frozenset(marked))
        self._paint(painter)
        newest = [painter.column(self._next + index, moments) for index, moments in enumerate(open_columns)]
        lines = []
        for row in range(rows):
            text = (self._texts[row] + "".join(column[row] for column, _ in newest))[-cells:]
            codes = (self._codes[row] + "".join(column[row] for _, column in newest))[-cells:]
            lines.append(self._figures(row, painter) if gutter else [])
            lines[-1] += [Segment(text[run.start() : run.end()], STYLES[run[1]]) for run in _RUN.finditer(codes)]
        first = self._next + len(open_columns) - cells
        places = {number - first: name for number, name in marked.items() if number >= first}
        lines.append(self._axis(gutter, cells, f"-{SPANS[span][1]}", f"scale: {scale.value}", places))
        return lines

    def _follow(self, history: History, span_s: float, cells: int, now: float) -> list[Moments]:
        """Take in the columns completed since the last frame; the rest, up to *now*."""
        width_s = span_s / cells / 2
        moment = history.newest_column(width_s, now)
        stop = moment // 2 + 1
        complete = history.complete_before(span_s, width_s, now) // 2
        if self._history is not history or self._window != (span_s, cells) or complete < self._next:
            self._history, self._window, self._painter = history, (span_s, cells), None
            self._complete.clear()
            self._next = stop - cells
        begin = max(self._next, stop - cells)
        moments = history.read(span_s, width_s, begin * 2, stop * 2)
        if moment % 2 == 0:
            moments[-1] = None  # still to come
        columns = list(zip(moments[::2], moments[1::2], strict=True))
        count = max(0, complete - begin)
        self._complete.extend(columns[:count])
        self._next = begin + count
        open_columns = columns[count:]
        while len(self._complete) + len(open_columns) > cells:
            self._complete.popleft()
        return open_columns

    def _top(self, panel: DevicePanel, scale: Scale, open_columns: Sequence[Moments]) -> int:
        capacity = max(0, panel.capacity or 0)
        if scale is Scale.CAPACITY and capacity:
            return capacity
        layer = 0 if scale is Scale.IN_USE else -1
        both = (sample for columns in (self._complete, open_columns) for column in columns for sample in column)
        top = round_up(max((sample[layer] for sample in both if sample), default=0))
        return min(top, capacity) if capacity else top

    def _paint(self, painter: Painter) -> None:
        """Bring the rows of the complete columns up to date."""
        if painter != self._painter:
            self._painter, self._painted = painter, self._next - len(self._complete)
            self._texts, self._codes = [""] * painter.rows, [""] * painter.rows
        count = min(self._next - self._painted, len(self._complete))
        fresh = [self._complete[index] for index in range(len(self._complete) - count, len(self._complete))]
        columns = [painter.column(self._next - count + index, moments) for index, moments in enumerate(fresh)]
        self._painted = self._next
        if not columns:
            return
        keep = len(self._complete)
        texts, codes = zip(*columns, strict=True)
        for row, (text, code) in enumerate(zip(zip(*texts, strict=True), zip(*codes, strict=True), strict=True)):
            self._texts[row] = (self._texts[row] + "".join(text))[-keep:]
            self._codes[row] = (self._codes[row] + "".join(code))[-keep:]

    def _figures(self, row: int, painter: Painter) -> Line:
        """What stands left of *row*: the top of the scale, its middle, the limit."""
        figure, style = "", DIM
        if row == 0:
            figure = format_short(painter.top)
        elif row == painter.limit_row:
            figure, style = format_short(painter.limit), LIMIT
        elif painter.rows >= 7 and row == painter.rows // 2:
            figure = format_short(painter.top // 2)
        line, tick = ("|", "+") if self._glyphs.ascii else ("│", "┤")
        return [Segment(f"{figure:>6} ", style), Segment(tick if figure else line, RULE)]

    def _axis(self, gutter: int, cells: int, span: str, scale: str, marks: dict[int, str]) -> Line:
        """The line under the area: the time it spans, what its scale is, where runs began."""
        rule = self._glyphs.rule
        line, taken = list(rule * cells), [False] * cells

        def put(at: int, text: str) -> None:
            if at >= 0 and at + len(text) <= cells and not any(taken[max(0, at - 1) : at + len(text) + 1]):
                line[at : at + len(text)] = text
                taken[at : at + len(text)] = [True] * len(text)

        put(cells - 5, " now ")
        put(1, f" {span} ")
        put(cells - 8 - len(scale), f" {scale} ")
        for at, name in sorted(marks.items()):
            tick = "^" if self._glyphs.ascii else "╵"
            put(at, f"{tick}{name} ")
            put(at, tick)  # nothing, where the name had room
        corner = "+" if self._glyphs.ascii else "└"
        left = [Segment(f"{'0':>6} ", DIM), Segment(corner, RULE)] if gutter else []
        text, codes = "".join(line), "".join("t" if used else "r" for used in taken)
        return left + [
            Segment(text[run.start() : run.end()], PLAIN if run[1] == "t" else RULE) for run in _RUN.finditer(codes)
        ]


def round_up(size: int) -> int:
    """The next of 1, 1.5, 2, 3, 4, 6, 8, … KiB not below *size*: a scale that seldom changes."""
    top = 1024
    while top < size:
        if top * 3 // 2 >= size:
            return top * 3 // 2
        top *= 2
    return top
