"""Turns the cells of the script's terminal, which pyte keeps, into lines of segments."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from pyte import screens
from pyte.screens import Char
from rich.cells import cell_len
from rich.color import Color, ColorParseError
from rich.segment import Segment
from rich.style import Style

from tfmemtop.ui.draw.lines import Line, width_of, word_edges

LONGEST = 20
"""The most rows of a line that is broken between words."""
_BLANK = Char(" ")

width = lru_cache(maxsize=4096)(cell_len)
screens.wcwidth = width  # Textual's widths, so that it draws lines with the width that they have here


class _GoesOn(list[Segment]):
    """A row whose text goes on in the next one: there was no more room in it."""


@lru_cache(maxsize=4096)
def cell(attributes: Char, character: str) -> Char:
    """Return a cell of *character* with *attributes*."""
    made: Char = attributes._replace(data=character)
    return made


def render(row: dict[int, Char]) -> Line:
    """Return a row of cells as segments, without the blanks at its end."""
    if not row:
        return []
    cells = list(map(row.__getitem__, range(max(row) + 1)))  # a missing cell is pyte's default
    while cells and cells[-1] == _BLANK:
        cells.pop()
    text = "".join(cell.data for cell in cells)
    if not (text.isascii() and len(text) == len(cells)):
        cells = _repaired(cells)
    line: Line = []
    for attributes, run in groupby(cells, itemgetter(slice(1, None))):
        characters, look = [cell.data for cell in run], _style(attributes)
        text = "".join(characters)
        # Characters that join into one (flags, families) were written into a cell each, and stay apart.
        apart = not text.isascii() and cell_len(text) != len(characters)
        line += [Segment(character, look) for character in characters if character] if apart else [Segment(text, look)]
    return _GoesOn(line) if getattr(row, "goes_on", False) else line


def between_words(lines: list[Line], columns: int, cursor: int) -> Iterator[Line]:
    """Yield *lines*; where a text goes on in further rows, they are broken between words, if they stay as many.

    The rows around number *cursor* are left as they are: the program may still write them.
    """
    begin = 0
    for at, line in enumerate(lines, 1):
        if at < len(lines) and isinstance(line, _GoesOn) and width_of(line) == columns:
            continue
        rows = lines[begin:at]
        joined = [segment for row in rows for segment in row]
        edges = word_edges(joined, columns) if 1 < len(rows) <= LONGEST and not begin <= cursor < at else []
        yield from map(list, Segment.divide(joined, edges)) if len(edges) == len(rows) else rows
        begin = at


def _repaired(cells: list[Char]) -> list[Char]:
    """Return *cells* with a blank for each half of a wide character whose other half has been overwritten."""
    result = list(cells)
    for x, cell in enumerate(cells):
        if cell.data == "":
            if x == 0 or width(cells[x - 1].data) != 2:
                result[x] = cell._replace(data=" ")
        elif width(cell.data) == 2 and (x + 1 == len(cells) or cells[x + 1].data != ""):
            result[x] = cell._replace(data=" ")
    return result


def crop(line: Line, columns: int) -> Line:
    """Return *line*, cut to at most *columns* cells."""
    if sum(segment.cell_length for segment in line) <= columns:
        return line
    return Segment.adjust_line_length(line, columns, pad=False)


@lru_cache(maxsize=4096)
def _style(attributes: tuple[Any, ...]) -> Style:
    """Return the style for a cell's *attributes*, which are in pyte's order."""
    fg, bg, bold, italics, underscore, strikethrough, reverse, _ = attributes
    return Style(
        color=_colour(fg),
        bgcolor=_colour(bg),
        bold=bold or None,
        italic=italics or None,
        underline=underscore or None,
        strike=strikethrough or None,
        reverse=reverse or None,
    )


def _colour(name: str) -> Color | None:
    if name == "default":
        return None
    bright = name.startswith(("bright", "bfight"))  # the latter in pyte up to 0.8.2
    base = name[6:] if bright else name
    base = "yellow" if base == "brown" else base
    for known in (f"bright_{base}" if bright else base, f"#{base}"):
        try:
            return Color.parse(known)
        except ColorParseError:
            pass
    return None
