"""The history graph of a device: a stacked area whose columns show every peak.

A column of cells begins at a multiple of its width in time. Once it is complete it never changes: it is read and
painted once, and from then on only moves left. So a frame costs the same however long the session is.
"""

from collections.abc import Sequence

import msgspec
from rich.style import Style

from tfmemtop.state.history import History
from tfmemtop.state.views import DevicePanel
from tfmemtop.ui.draw.axis import GUTTER, Places, axis, figures, label_places
from tfmemtop.ui.draw.braille import STYLES, Moments, Painter
from tfmemtop.ui.draw.lines import Line, styled
from tfmemtop.ui.draw.palette import DIM, LIMIT, Glyphs
from tfmemtop.ui.draw.scale import Scale, Top, fitting
from tfmemtop.ui.draw.window import Window
from tfmemtop.units import format_short

_NO_GUTTER_BELOW = 32
_LIMIT = "limit"
_LIMIT_CELLS = len(_LIMIT) + 2
_AFTER_A_RUN = 9  # cells that the name of a run takes
_ASIDE = 7  # cells by which a label moves aside for a more important one


class Mark(msgspec.Struct, frozen=True):
    """A moment to be marked: ``t`` in session seconds, and its name."""

    t: float
    name: str


class Graph:
    """One device's graph, with a cache of what need not be computed again."""

    def __init__(self, glyphs: Glyphs, braille: bool) -> None:
        self._glyphs = glyphs
        self._braille = braille and not glyphs.ascii
        self._window: tuple[object, ...] = ()  # the history, seconds of a column, cells, a fixed first column
        self._complete: dict[int, Moments] = {}  # columns of the window that will not change, by number
        self._next = 0  # number of the first column that is not yet complete
        self._top: Top | None = None
        self._follows: Scale | None = None
        self._painter: Painter | None = None
        self._painted: dict[tuple[int, Moments], tuple[str, str]] = {}  # by the painter
        self._closed: tuple[object, ...] = ()  # what the lines were drawn from, for a graph to which nothing is added
        self._lines: list[Line] = []

    def build(
        self, panel: DevicePanel, window: Window, began: Sequence[Mark], scale: Scale, width: int, height: int
    ) -> list[Line]:
        """Return *height* lines of *width* cells: the area of *window*, and below it the axis with its labels.

        *began* are the starts of runs. With a height of less than two lines, nothing is returned.
        """
        gutter = GUTTER if width >= _NO_GUTTER_BELOW else 0
        cells, rows = width - gutter, height - 1
        if cells < 1 or rows < 1:
            return []
        history = panel.whole.history if window.closed and panel.whole else panel.history
        facts = panel.capacity, panel.last_limit, panel.ran_out
        drawn_from = (history, window, tuple(began), scale, width, height, facts)
        if window.closed and self._closed == drawn_from:
            return self._lines
        first = window.first(cells)
        columns = self._read(history, window, cells, first)
        top = self._fit(panel, scale, columns)
        places = {
            name: frozenset(History.newest_column(window.column_s(cells), min(t, window.until)) for t in times)
            for name, times in (("began", [mark.t for mark in began]), ("ran_out", panel.ran_out))
        }
        painter = Painter(
            self._glyphs, self._braille, panel.kinds, rows, top.size, panel.last_limit, panel.nearly_full, **places
        )
        known = self._painted if painter == self._painter else {}
        self._painter = painter
        self._painted = {key: known.get(key) or painter.column(*key) for key in enumerate(columns, first)}
        note = _note(panel, top, _peak(columns, -1), self._glyphs)
        lines = self._area(painter, cells, note, bool(gutter))
        lines.append(self._axis(panel, window, began, scale, top, first, cells, bool(gutter)))
        self._closed, self._lines = drawn_from, lines
        return lines

    def _read(self, history: History, window: Window, cells: int, first: int) -> list[Moments]:
        """Return the columns of *window*, from column *first* on. Those that were complete are not read again."""
        column_s = window.column_s(cells)
        width_s, span_s = column_s / 2, column_s * cells
        moment = history.newest_column(width_s, window.until)
        stop = min(moment // 2 + 1, first + cells)
        complete = min(stop, history.complete_before(span_s, width_s, window.until) // 2)
        key = history, column_s, cells, None if window.start is None else first
        if self._window != key or complete < self._next:
            self._window, self._complete, self._next, self._follows = key, {}, first, None
        begin = max(self._next, first)
        moments = history.read(span_s, width_s, begin * 2, stop * 2, window.start or 0.0)
        if moment % 2 == 0 and moment // 2 + 1 == stop:
            moments[-1] = None  # the second half of the newest column has not begun
        columns = {number: column for number, column in self._complete.items() if number >= first}
        columns |= enumerate(zip(moments[::2], moments[1::2], strict=True), begin)
        self._next = max(begin, complete)
        self._complete = {number: column for number, column in columns.items() if number < self._next}
        return list(columns.values())

    def _fit(self, panel: DevicePanel, scale: Scale, columns: Sequence[Moments]) -> Top:
        capacity = max(0, panel.capacity or 0) or None
        known = self._top if self._top and self._top.whole == capacity else None
        follows = Scale.AUTO if scale is Scale.PINNED else scale
        if scale is Scale.WHOLE and capacity:
            self._top = Top(capacity)
        elif scale is not Scale.PINNED or known is None:
            before = known if follows is self._follows else None
            self._top = fitting(_peak(columns, 0 if scale is Scale.IN_USE else -1), capacity, before)
        self._follows = follows
        assert self._top is not None
        return self._top

    def _area(self, painter: Painter, cells: int, note: "_Note", gutter: bool) -> list[Line]:
        columns = list(self._painted.values())
        columns += [painter.column(-1, (None, None))] * (cells - len(columns))  # columns in the future
        lines = []
        texts, styles = (list(map("".join, zip(*each, strict=True))) for each in zip(*columns, strict=True))
        for row, (text, codes) in enumerate(zip(texts, styles, strict=True)):
            if row == painter.limit_row and codes.startswith("l" * _LIMIT_CELLS):
                text = f" {_LIMIT} {text[_LIMIT_CELLS:]}"
            elif row == 0:
                text, codes = note.written(text, codes)
            left = figures(*self._figure(row, painter), self._glyphs) if gutter else []
            lines.append(left + styled(text, codes, STYLES))
        return lines

    def _figure(self, row: int, painter: Painter) -> tuple[str, Style]:
        """Return the figure left of *row*, and its style: the top of the scale, its middle, the limit, or nothing."""
        if row == 0:
            return format_short(painter.top), DIM
        if row == painter.limit_row:
            return format_short(painter.limit), LIMIT
        middle = painter.rows >= 7 and row == painter.rows // 2
        return (format_short(painter.top // 2) if middle else ""), DIM

    def _axis(
        self,
        panel: DevicePanel,
        window: Window,
        began: Sequence[Mark],
        scale: Scale,
        top: Top,
        first: int,
        cells: int,
        gutter: bool,
    ) -> Line:
        """Return the line under the area: its time span, its scale, where runs began and where memory ran out."""
        glyphs = self._glyphs

        def cell(t: float) -> int:
            return History.newest_column(window.column_s(cells), t) - first

        name = "" if scale in (Scale.AUTO, Scale.WHOLE) else scale.value
        said = top.text(name)
        right = cells - len(window.right) - 2
        labels: list[Places] = [
            ((right, f" {window.right} "),),
            tuple((right - len(said) - 3 - aside, f" {said} ") for aside in range(0, cells, _ASIDE)),
        ]
        runs = [label_places(cell(mark.t), glyphs.tick, mark.name, left=True) for mark in began]
        left: list[Places] = [((1, f" {window.left} "), (_AFTER_A_RUN, f" {window.left} "))] if window.left else []
        labels += [*left, *runs] if window.start is None else [*runs, *left]
        failures = [label_places(cell(t), glyphs.failed, "out of memory", left=True) for t in panel.ran_out]
        return axis(cells, labels, failures, glyphs, gutter=gutter)


class _Note(msgspec.Struct, frozen=True):
    """A note in the first row about what lies above the top of the scale: texts with the codes of their styles.

    The note stands where nothing is drawn. With ``over`` it may cover the area: it then reports that the area goes on
    above the scale.
    """

    parts: tuple[tuple[str, str], ...]
    over: bool

    def written(self, text: str, codes: str) -> tuple[str, str]:
        """Return *text* and *codes* of a row with the note at the right end, or else the left one, if there is room."""
        note = "".join(part for part, _ in self.parts)
        style = "".join(code * len(part) for part, code in self.parts)
        for at in (len(text) - len(note), 0) if note else ():
            end = at + len(note)
            if at >= 0 and end <= len(text) and (self.over or not codes[at:end].strip(" m")):
                return text[:at] + note + text[end:], codes[:at] + style + codes[end:]
        return text, codes


def _note(panel: DevicePanel, top: Top, highest: int, glyphs: Glyphs) -> _Note:
    if highest > top.size:
        return _Note(((f"{glyphs.up} up to {format_short(highest)}", "n"),), over=True)
    parts = []
    if top.whole is not None and top.halvings:
        if panel.last_limit is not None and top.size < panel.last_limit != top.whole:
            parts.append((f"{glyphs.up} limit {format_short(panel.last_limit)}  ", "l"))
        whole = "card" if panel.gpu else _LIMIT if panel.capacity == panel.last_limit else "host"
        parts.append((f"{glyphs.up} {whole} {format_short(top.whole)}", "n"))
    return _Note(tuple(parts), over=False)


def _peak(columns: Sequence[Moments], layer: int) -> int:
    """Return the highest end of *layer* (0 in use, -1 all) in *columns*, in bytes."""
    return max((sample[layer] for column in columns for sample in column if sample), default=0)
