"""Makes text fit for the screen: safe, wrapped, cut. Pure."""

from rich.cells import cell_len, chop_cells, set_cell_size
from textual.content import Content

from tfmemtop.safe import safe

LONGEST = 8192
"""The most characters of one text that are shown over several lines. They fill a screen or more."""


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Return *text*, made safe, in lines of at most *width* cells, broken at blanks; later lines begin with *indent*.

    Blanks before the text stay. Words longer than a line are broken where it ends. There is at least one line.
    """
    room = max(2, width)  # a wide character takes two
    text = safe(_shortened(text))
    blanks = text[: len(text) - len(text.lstrip(" "))][: room - 2]
    whole = blanks + " ".join(text.split())
    first, *more = _lines(whole, room)
    inner = room - cell_len(indent)
    if not indent or not more or inner < 2:
        return [first, *more]
    return [first, *(indent + line for line in _lines(whole[len(first) :].lstrip(), inner))]


def _lines(text: str, width: int) -> list[str]:
    return [line.plain.rstrip(" ") for line in Content(text).wrap(width)] or [""]


def wrap_code(line: str, width: int) -> list[str]:
    """Return a *line* of code, made safe, in lines of at most *width* cells, broken at blanks.

    Later lines are indented by four cells more than the first.
    """
    line = safe(line)
    if cell_len(line) <= width:
        return [line]
    return wrap(line, width, " " * (len(line) - len(line.lstrip(" ")) + 4))


def chop(text: str, width: int, indent: str = "") -> list[str]:
    """Return *text*, made safe, in lines of at most *width* cells, each but the last full.

    Later lines begin with *indent*.
    """
    text = safe(_shortened(text))
    first = (chop_cells(text, max(2, width)) or [""])[0]
    rest = chop_cells(text[len(first) :], max(2, width - cell_len(indent)))
    return [first, *(indent + part for part in rest)]


def _shortened(text: str) -> str:
    """Return *text*, cut to ``LONGEST`` characters: no user reads more."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def cut_left(text: str, cells: int) -> str:
    """Return text without its first *cells* cells. A blank replaces half of a wide character."""
    return set_cell_size(text[::-1], cell_len(text) - cells)[::-1] if cells > 0 else text


def end_of(name: str, width: int, ellipsis: str = "…") -> str:
    """Return *name*, made safe, in at most *width* cells.

    Of ``a/b/c`` the last parts are kept; of a single part that is too long, its beginning and its end.
    """
    name = safe(_shortened(name))
    if cell_len(name) <= width:
        return name
    if width < 3:
        return set_cell_size(name, max(0, width))
    parts = name.split("/")
    for gone in range(1, len(parts)):
        rest = f"{ellipsis}/{'/'.join(parts[gone:])}"
        if cell_len(rest) <= width:
            return rest
    last = parts[-1] or name
    if cell_len(last) <= width - 1:
        return ellipsis + last
    room = width - cell_len(ellipsis)
    tail = cut_left(last, cell_len(last) - (room + 1) // 2)
    return set_cell_size(last, room - cell_len(tail)) + ellipsis + tail


def exactly(text: str, width: int) -> str:
    """Return *text* padded or cut to exactly *width* cells."""
    if text.isascii():
        return text[:width].ljust(width)
    return set_cell_size(text, width)
