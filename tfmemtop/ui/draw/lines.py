"""The base of every panel: lines of segments, of which only those that changed are drawn anew.

Textual's own widgets take 36 to 48 ms for an update of a table of 30 rows. Drawing lines takes a tenth of that.
tfmemtop may run all day beside a training, so it must use little CPU time.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from textwrap import TextWrapper

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tfmemtop.failure import not_drawn
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.ui.draw.glyphs import ELLIPSIS, LINE
from tfmemtop.ui.draw.palette import ERROR, PLAIN, RULE, TITLE
from tfmemtop.ui.draw.text import wrap

Line = list[Segment]

_CURSOR = Style(reverse=True)
_RUN = re.compile(r"(.)\1*")


class Panel(Widget):
    """A widget whose content comes from ``build``: lines for a width and a height, from the newest state."""

    DEFAULT_CSS = "Panel { width: 1fr; height: 1fr; background: ansi_default; }"

    def __init__(self) -> None:
        super().__init__()
        self.state = State()
        self._lines: list[Line] = []
        self._strips: list[Strip] = []
        self._drawn: tuple[int, int] = (0, 0)

    def build(self, width: int, height: int) -> list[Line]:
        """Return the panel's lines, top first. If they are fewer than *height*, blank lines follow."""
        raise NotImplementedError(type(self).__name__)

    def show(self, state: State) -> None:
        """Store *state* as the newest, and redraw the lines that it changes. A hidden panel draws nothing."""
        self.state = state
        self.redraw()

    def redraw(self) -> None:
        """Build the lines again, and draw those that differ."""
        width, height = self.size
        if not (self.is_mounted and self.display and width and height):
            return
        lines = self._built(width, height)
        lines += [[]] * (height - len(lines))
        if self._drawn != (width, height):
            self._lines, self._drawn = [], (width, height)
            self._strips = [Strip.blank(width)] * height
        changed = []
        for y, line in enumerate(lines):
            if y >= len(self._lines) or line != self._lines[y]:
                self._strips[y] = Strip(line).adjust_cell_length(width)
                changed.append(Region(0, y, width, 1))
        self._lines = lines
        if changed:
            self.refresh(*changed)

    def _built(self, width: int, height: int) -> list[Line]:
        try:
            return self.build(width, height)[:height]
        except Exception as error:  # whatever the error is, the other panels go on
            return [cannot_be_drawn("this panel", error, width)]

    def render_line(self, y: int) -> Strip:
        if self._drawn != self.size:
            self.redraw()  # its resize event has not arrived yet; no frame must show an empty panel first
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width)

    def on_resize(self) -> None:
        self.redraw()

    def title_line(self, width: int, title: str, right: str = "", chosen: bool = False) -> Line:
        """Return a rule across the panel, with *title* at its left end and *right* at its right end."""
        title, right = safe(title), safe(right)
        rule = LINE
        left = f" {fit(title, max(4, width - 4))} "
        room = width - 2 - cell_len(left) - (cell_len(right) + 3 if right else 0)
        if right and room < 1:
            right, room = "", width - 2 - cell_len(left)
        line = [Segment(rule * 2, RULE), Segment(left, TITLE + Style(reverse=True) if chosen else TITLE)]
        line.append(Segment(rule * max(0, room), RULE))
        if right:
            line += [Segment(f" {right} ", PLAIN), Segment(rule, RULE)]
        return line


def fit(text: str, width: int) -> str:
    """Return *text*, made safe, in at most *width* cells. An ellipsis replaces the end of a longer text."""
    text = safe(text)
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + ELLIPSIS if width > 0 else ""


def cut(line: Line, width: int) -> Line:
    """Return *line* in at most *width* cells. An ellipsis replaces the end of a longer line."""
    kept: Line = []
    room = width
    for at, segment in enumerate(line):
        taken = cell_len(segment.text)
        last = at == len(line) - 1
        if taken > room or (taken == room and not last):
            return [*kept, Segment(fit(segment.text + ELLIPSIS, room), segment.style)]
        kept.append(segment)
        room -= taken
    return kept


def wrapped(line: Line, width: int) -> list[Line]:
    """Return *line* in pieces of at most *width* cells; at least one piece, which may be empty."""
    total = width_of(line)
    if total <= width:
        return [line]
    edges = word_edges(line, width) or [*range(width, total, width), total]
    return [list(piece) for piece in Segment.divide(line, edges)]


def word_edges(line: Line, width: int) -> list[int]:
    """Return the ends of the pieces of *line*, of at most *width* cells, if it is broken between words.

    Empty if it is not plain text in ASCII. A word that is longer than a piece is broken all the same.
    """
    text = "".join(segment.text for segment in line)
    words = TextWrapper(width, expand_tabs=False, replace_whitespace=False, drop_whitespace=False)
    return list(accumulate(map(len, words.wrap(text)))) if text.isascii() else []


def with_cursor(line: Line, x: int) -> Line:
    """Return *line* with a terminal's cursor over cell *x*, which may lie beyond its end."""
    padded = [*line, Segment(" " * (x + 1))]
    start = end = 0
    for character in "".join(segment.text for segment in padded):
        # An accent has no cell of its own, a wide character has two: the cursor covers the whole character.
        start, end = end, end + cell_len(character)
        if end > x:
            break
    total = sum(segment.cell_length for segment in padded)
    before, under, after = Segment.divide(padded, [start, end, total])
    return [*before, *(Segment(segment.text, (segment.style or Style()) + _CURSOR) for segment in under), *after]


def cannot_be_drawn(what: str, error: Exception, width: int) -> Line:
    """Return the line that replaces *what*, which raised *error* while it was drawn."""
    return [Segment(fit(not_drawn(what, error), width), ERROR)]


def segments(parts: Iterable[tuple[str, Style]]) -> Line:
    """Return the segments of *parts*, without empty ones."""
    return [Segment(text, style) for text, style in parts if text]


def styled(text: str, codes: str, styles: Mapping[str, Style]) -> Line:
    """Return *text* as segments. Each character has the style that its character in *codes* stands for."""
    return [Segment(text[run.start() : run.end()], styles[run[1]]) for run in _RUN.finditer(codes)]


def flow(items: Iterable[Line], width: int, gap: str = "   ") -> list[Line]:
    """Return *items* side by side, *gap* apart, in as many lines of at most *width* cells as they need."""
    lines: list[Line] = [[Segment(" ")]]
    for item in items:
        begun = len(lines[-1]) > 1
        if begun and width_of(lines[-1]) + len(gap) + width_of(item) > width:
            lines.append([Segment(" ")])
            begun = False
        lines[-1] += [*([Segment(gap)] if begun else []), *item]
    return lines


def paragraph(text: str, width: int, style: Style = PLAIN, indent: str = " ") -> list[Line]:
    """Return *text*, wrapped after *indent* in lines of *width* cells, the last of which stays free."""
    return [[Segment(indent + line, style)] for line in wrap(text, max(10, width - 2 * len(indent)))] if text else []


def width_of(line: Sequence[Segment]) -> int:
    """Return how many cells *line* takes."""
    return sum(cell_len(segment.text) for segment in line)
