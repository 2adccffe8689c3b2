"""A process's memory as one bar to scale, and the table of its slices. Pure."""

from rich.segment import Segment
from rich.style import Style

from tfmemtop.reports import account as words
from tfmemtop.state.breakdown import Breakdown, MemoryPart
from tfmemtop.ui.draw.bar import apportion
from tfmemtop.ui.draw.lines import Line, cut, fit
from tfmemtop.ui.draw.palette import BOLD, DIM, LAYER, Glyphs
from tfmemtop.ui.draw.text import exactly, wrap

_NAME, _FIGURE = 14, 11  # cells
_KINDS = (Style(color="green"), Style(color="bright_green"), Style(color="cyan"), Style(color="bright_cyan"))
_LAYERS = {
    MemoryPart.CONTEXT: "rest",
    MemoryPart.CACHED: "cached",
    MemoryPart.OUTSIDE: "others",
    MemoryPart.CACHED_AND_OUTSIDE: "others",
    MemoryPart.UNREAD: "others",
}


def lines(found: Breakdown, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the bar, a line for each slice with its number in the bar, and notes on peak and limit."""
    looks = _looks(found, glyphs)
    drawn = [_bar(found, looks, width, glyphs)]
    total = found.size
    for number, (part, (glyph, style)) in enumerate(zip(found.slices, looks, strict=True), 1):
        share = f"{part.size / total:4.0%}" if total else ""
        head = f" {exactly(words.name(part.part), _NAME)} {words.figure(part):>{_FIGURE}} {share:>4}  "
        line = [Segment(f"{number} ", DIM), Segment(glyph, style), Segment(head)]
        room = width - 3 - len(head)
        if room > 4:
            line.append(Segment(fit(words.meaning(part, found), room, glyphs), DIM))
        drawn.append(cut(line, width, glyphs))
    for note in words.notes(found):
        drawn += [[Segment(f"   {line}")] for line in wrap(note, width - 3)]
    return drawn


def _looks(found: Breakdown, glyphs: Glyphs) -> list[tuple[str, Style]]:
    """Return each slice's glyph and colour. Slices in use differ only by colour, and in the bar by their numbers."""
    kinds = iter(_KINDS)
    looks = []
    for part in found.slices:
        layer = _LAYERS.get(part.part)
        look = (glyphs.fill[layer], LAYER[layer]) if layer else (glyphs.fill["in_use"], next(kinds, _KINDS[0]))
        looks.append(look)
    return looks


def _bar(found: Breakdown, looks: list[tuple[str, Style]], width: int, glyphs: Glyphs) -> Line:
    cells = apportion([part.size for part in found.slices], width - 2)
    left, right = glyphs.ends
    line: Line = [Segment(left, DIM)]
    for number, (count, (glyph, style)) in enumerate(zip(cells, looks, strict=True), 1):
        if count:
            # The number stands at the beginning of the slice. A slice of one cell shows only its number.
            line += [Segment(str(number), style + BOLD + Style(reverse=True)), Segment(glyph * (count - 1), style)]
    return [*line, Segment(" " * (width - 2 - sum(cells))), Segment(right, DIM)]
