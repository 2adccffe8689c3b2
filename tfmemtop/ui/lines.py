"""The base of every panel: lines of segments, of which only those that changed are drawn anew.

Textual's ready widgets cost 36 to 48 ms an update of a 30-row table; drawing lines costs a tenth,
and a monitor that runs all day beside a training must be frugal.
"""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tfmemtop.charset import to_ascii
from tfmemtop.failure import describe
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.ui.palette import ASCII, ERROR, PLAIN, RULE, TITLE, UNICODE, Glyphs

Line = list[Segment]


class Panel(Widget):
    """A widget whose content is ``build``: lines for a width and a height, from the newest state."""

    DEFAULT_CSS = "Panel { width: 1fr; height: 1fr; background: ansi_default; }"

    def __init__(self, *, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self.state = State()
        self._lines: list[Line] = []
        self._strips: list[Strip] = []
        self._drawn: tuple[int, int] = (0, 0)

    def build(self, width: int, height: int) -> list[Line]:
        """The panel's lines, top first; fewer than *height* leave the rest blank."""
        raise NotImplementedError(type(self).__name__)

    def show(self, state: State) -> None:
        """Take *state* as the newest; redraw what it changes. A hidden panel does nothing."""
        self.state = state
        self.redraw()

    def redraw(self) -> None:
        """Build again, and draw the lines that differ."""
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
                self._strips[y] = self._strip(line, width)
                changed.append(Region(0, y, width, 1))
        self._lines = lines
        if changed:
            self.refresh(*changed)

    def _built(self, width: int, height: int) -> list[Line]:
        try:
            return self.build(width, height)[:height]
        except Exception as error:  # whatever it is, the other panels live on
            return [cannot_be_drawn("this panel", error, width)]

    def _strip(self, line: Line, width: int) -> Strip:
        if self.glyphs.ascii:
            line = [Segment(to_ascii(text), style) for text, style, _ in line]
        return Strip(line).adjust_cell_length(width)

    def render_line(self, y: int) -> Strip:
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width)

    def on_resize(self) -> None:
        self.redraw()

    def title_line(self, width: int, title: str, right: str = "", chosen: bool = False) -> Line:
        """A rule across the panel with *title* on its left and *right* on its right."""
        title, right = safe(title), safe(right)
        rule = self.glyphs.rule
        left = f" {fit(title, max(4, width - 4), self.glyphs)} "
        room = width - 2 - cell_len(left) - (cell_len(right) + 3 if right else 0)
        if right and room < 1:
            right, room = "", width - 2 - cell_len(left)
        line = [Segment(rule * 2, RULE), Segment(left, TITLE + Style(reverse=True) if chosen else TITLE)]
        line.append(Segment(rule * max(0, room), RULE))
        if right:
            line += [Segment(f" {right} ", PLAIN), Segment(rule, RULE)]
        return line


def fit(text: str, width: int, glyphs: Glyphs = UNICODE) -> str:
    """*text*, made safe, in at most *width* cells, its end replaced by an ellipsis where it is longer."""
    text = safe(text)
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + glyphs.ellipsis if width > 0 else ""


def cannot_be_drawn(what: str, error: Exception, width: int) -> Line:
    """The line in place of *what* raised *error* while it was drawn."""
    return [Segment(fit(f"{what} cannot be drawn: {describe(error)}", width), ERROR)]


def segments(parts: Iterable[tuple[str, Style]]) -> Line:
    """Segments of *parts*, empty ones left out."""
    return [Segment(text, style) for text, style in parts if text]


def width_of(line: Sequence[Segment]) -> int:
    """Cells that *line* takes."""
    return sum(cell_len(segment.text) for segment in line)


__all__ = ["ASCII", "UNICODE", "Line", "Panel", "cannot_be_drawn", "fit", "segments", "width_of"]
