"""Turns the cells of a terminal emulator into segments with styles."""

from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from pyte.screens import Char
from rich.cells import cell_len
from rich.color import Color, ColorParseError
from rich.segment import Segment
from rich.style import Style

from tfmemtop.ui.draw.lines import Line

BLANK = Char(" ")

_data, _attributes = itemgetter(0), itemgetter(slice(1, None))

width: Callable[[str], int] = lru_cache(maxsize=4096)(cell_len)
"""How many cells a character takes, counted as Textual does, so that it draws lines with the width they have here."""


def render(row: dict[int, Char]) -> Line:
    """Return a row of cells as segments, without the blanks at its end."""
    if not row:
        return []
    cells = list(map(row.__getitem__, range(max(row) + 1)))  # a missing cell is pyte's default
    while cells and cells[-1] == BLANK:
        cells.pop()
    text = "".join(map(_data, cells))
    if not (text.isascii() and len(text) == len(cells)):
        cells = _repaired(cells)
    line: Line = []
    for attributes, run in groupby(cells, _attributes):
        characters = list(map(_data, run))
        text, look = "".join(characters), style(attributes)
        if text.isascii() or cell_len(text) == len(characters):
            line.append(Segment(text, look))
        else:
            # Characters that join into one (flags, families) were written into a cell each, and stay apart.
            line += [Segment(character, look) for character in characters if character]
    return line


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
def style(attributes: tuple[Any, ...]) -> Style:
    """Return the style for a cell's *attributes*, which are in pyte's order."""
    fg, bg, bold, italics, underscore, strikethrough, reverse, dim = attributes
    return Style(
        color=_colour(fg),
        bgcolor=_colour(bg),
        bold=bold or None,
        italic=italics or None,
        underline=underscore or None,
        strike=strikethrough or None,
        reverse=reverse or None,
        dim=dim or None,
    )


def _colour(name: str) -> Color | None:
    if name == "default":
        return None
    bright = name.startswith(("bright", "bfight"))  # the latter in pyte up to 0.8.2
    base = name[6:] if bright else name
    base = "yellow" if base == "brown" else base
    try:
        return Color.parse(f"bright_{base}" if bright else base)
    except ColorParseError:
        return Color.parse(f"#{base}")
