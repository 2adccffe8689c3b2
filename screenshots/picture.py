"""The SVG of a screen for the README: bars, lines and Braille are drawn as shapes, whatever font the reader has."""

from collections.abc import Mapping
from html import escape
from itertools import groupby

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

CELL_W, CELL_H = 9.0, 19.0
DARK = {
    "background": "#16181d",
    "foreground": "#c9d1d9",
    "black": "#16181d",
    "red": "#f26d6d",
    "green": "#6cc070",
    "yellow": "#e0b152",
    "blue": "#5b9bf5",
    "magenta": "#bd7fd6",
    "cyan": "#52bccb",
    "white": "#c9d1d9",
    "bright_black": "#6e7681",
    "bright_red": "#ff8a8a",
    "bright_green": "#8ad98e",
    "bright_yellow": "#f2cc7a",
    "bright_blue": "#82b5ff",
    "bright_magenta": "#d5a1ea",
    "bright_cyan": "#7fd8e4",
    "bright_white": "#ffffff",
}
"""The colours of a terminal: the sixteen, and background and foreground for cells without a colour."""
_SHADES = {"█": 1.0, "▓": 0.7, "▒": 0.45, "░": 0.28}
_LEFT_BLOCKS = "▏▎▍▌▋▊▉"
_DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
_LINES = {  # where the strokes go from the middle: left, right, up, down
    "─": "lr", "━": "lr", "╌": "lr", "│": "ud", "┊": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu",
    "├": "rud", "┤": "lud", "┬": "lrd", "┴": "lru", "┼": "lrud", "╵": "u", "╷": "d",
}  # fmt: skip


def picture(strips: list[Strip], columns: int, theme: Mapping[str, str] = DARK) -> str:
    """Return the SVG of *strips*, *columns* cells wide, on a terminal with the colours of *theme*."""
    width, height = columns * CELL_W + 16, len(strips) * CELL_H + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        'font-family="\'DejaVu Sans Mono\', Menlo, Consolas, monospace" font-size="15">',
        f'<rect width="{width:g}" height="{height:g}" rx="6" fill="{theme["background"]}"/>',
        '<g transform="translate(8 8)">',
    ]
    for y, strip in enumerate(strips):
        x = 0
        for segment in strip:
            parts += _segment(segment, x, y, theme)
            x += cell_len(segment.text)
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _segment(segment: Segment, x: int, y: int, theme: Mapping[str, str]) -> list[str]:
    style = segment.style or Style()
    front, back = _colour(style.color, theme["foreground"], theme), _colour(style.bgcolor, None, theme)
    if style.reverse:
        front, back = back or theme["background"], front
    if style.dim:
        front = theme["bright_black"]
    parts = []
    if back and back != theme["background"]:
        parts.append(_rect(x * CELL_W, y * CELL_H, cell_len(segment.text) * CELL_W, CELL_H, back))
    for drawn, group in groupby(segment.text, key=_is_drawn):
        text = "".join(group)
        if drawn:
            for character, same in groupby(text):
                count = len(list(same))
                parts += _shape(character or " ", x, y, count, front or theme["foreground"])
                x += count
        else:
            cells = cell_len(text)
            if text.strip():
                weight = ' font-weight="bold"' if style.bold else ""
                under = ' text-decoration="underline"' if style.underline else ""
                parts.append(
                    f'<text x="{x * CELL_W:g}" y="{y * CELL_H + 14:g}" fill="{front}"{weight}{under} '
                    f'textLength="{cells * CELL_W:g}" lengthAdjust="spacingAndGlyphs" xml:space="preserve">'
                    f"{escape(text)}</text>"
                )
            x += cells
    return parts


def _colour(color: object, otherwise: "str | None", theme: Mapping[str, str]) -> "str | None":
    name = getattr(color, "name", None)
    if name in (None, "default"):
        return otherwise
    triplet = getattr(color, "triplet", None)
    if triplet is not None:
        return str(triplet.hex)
    return theme.get(str(name)) or str(color.get_truecolor().hex)  # type: ignore[attr-defined]


def _is_drawn(character: str) -> bool:
    known = character in _SHADES or character in _LEFT_BLOCKS or character in "▐·▁" or character in _LINES
    return known or 0x2800 <= ord(character) < 0x2900


def _rect(x: float, y: float, width: float, height: float, fill: str, opacity: float = 1.0) -> str:
    faint = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"{faint}/>'


def _shape(character: str, column: int, row: int, count: int, fill: str) -> list[str]:
    x, y, width = column * CELL_W, row * CELL_H, count * CELL_W
    if character in _SHADES:
        return [_rect(x, y + 1, width, CELL_H - 2, fill, _SHADES[character])]
    if character in _LEFT_BLOCKS:
        share = (1 + _LEFT_BLOCKS.index(character)) / 8
        return [_rect(x + i * CELL_W, y + 1, CELL_W * share, CELL_H - 2, fill) for i in range(count)]
    if character == "▐":
        return [_rect(x + (i + 0.5) * CELL_W, y + 1, CELL_W / 2, CELL_H - 2, fill) for i in range(count)]
    if character == "▁":
        return [_rect(x, y + CELL_H * 7 / 8 - 1, width, CELL_H / 8, fill)]
    if character == "·":
        return [_rect(x + (i + 0.4) * CELL_W, y + 9, 1.6, 1.6, fill) for i in range(count)]
    if character in _LINES:
        return _lines(_LINES[character], x, y, width, count, fill, dashed=character in "┊╌")
    bits = ord(character) - 0x2800
    dots = [
        f"M{x + i * CELL_W + 1.1 + dx * CELL_W / 2:g} {y + 1.2 + dy * CELL_H / 4:g}h2.6v2.6h-2.6z"
        for i in range(count)
        for bit, (dx, dy) in enumerate(_DOTS)
        if bits >> bit & 1
    ]
    return [f'<path d="{"".join(dots)}" fill="{fill}"/>'] if dots else []


def _lines(sides: str, x: float, y: float, width: float, count: int, fill: str, dashed: bool) -> list[str]:
    middle = y + CELL_H / 2 - 0.6
    if sides == "lr":
        if dashed:
            return [_rect(x + i * CELL_W, middle, CELL_W * 0.6, 1.2, fill) for i in range(count)]
        return [_rect(x, middle, width, 1.2, fill)]
    parts = []
    for i in range(count):
        centre = x + (i + 0.5) * CELL_W - 0.6
        if "l" in sides:
            parts.append(_rect(x + i * CELL_W, middle, CELL_W / 2, 1.2, fill))
        if "r" in sides:
            parts.append(_rect(centre, middle, CELL_W / 2 + 0.6, 1.2, fill))
        top = y if "u" in sides else middle
        bottom = y + CELL_H if "d" in sides else middle + 1.2
        if "u" in sides or "d" in sides:
            height = (bottom - top) * (0.6 if dashed else 1)
            parts.append(_rect(centre, top, 1.2, height, fill))
    return parts
