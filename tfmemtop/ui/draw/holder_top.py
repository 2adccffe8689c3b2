"""The largest holders in a few lines, for a panel that also shows other things. Pure."""

from rich.segment import Segment

from tfmemtop.findings import holder_texts as words
from tfmemtop.state.holder_views import Listed
from tfmemtop.state.holders import By
from tfmemtop.ui.draw.holder_table import bar, kinds_label
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, DIM, Glyphs
from tfmemtop.ui.draw.text import end_of, exactly
from tfmemtop.units import format_short

LEAST = 3
"""The fewest lines in which holders are shown, title included."""
_NAME_LEAST, _NAME_MOST, _KINDS, _BYTES = 16, 32, 13, 8


def top_lines(shown: Listed, age_s: float, width: int, rows: int, glyphs: Glyphs, *, letters: bool) -> list[Line]:
    """Return a title and the largest rows, in at most *rows* lines of *width* cells; nothing if that is too little.

    *age_s* is the age of the window in seconds.
    """
    if rows < LEAST or width < 40:
        return []
    lines: list[Line] = [[Segment(fit(f" {words.top_title(shown.total, By.LAYER, age_s)}", width, glyphs), DIM)]]
    name_cells = min(_NAME_MOST, max(_NAME_LEAST, (width - _KINDS - _BYTES - 4) // 2))
    room = width - name_cells - _KINDS - _BYTES - 4
    every = [*shown.rows, *([shown.unknown] if shown.unknown else [])]
    for row in sorted(every, key=lambda row: -row.bytes)[: rows - 1]:
        name = end_of(words.holder(row.name, row.kind), name_cells, glyphs.ellipsis)
        line: Line = [Segment(f" {exactly(name, name_cells)} "), *kinds_label(row, _KINDS)]
        line.append(Segment(f"{format_short(row.bytes):>{_BYTES}} ", BOLD))
        lines.append([*line, *bar(row, shown.largest_share, max(1, room), letters=letters)])
    return lines
