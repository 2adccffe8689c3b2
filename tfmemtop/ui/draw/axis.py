"""The line under a graph: a rule with labels. Where room lacks, the less important labels are left out."""

from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment

from tfmemtop.ui.draw.lines import Line, styled
from tfmemtop.ui.draw.palette import DIM, LIMIT, PLAIN, RULE, Glyphs

GUTTER = 8
"""Cells at the left of a graph for its scale's figures."""

Places = tuple[tuple[int, str], ...]
"""Where a label may stand: the number of its first cell, and its text there. The first place with room is taken."""

_STYLES = {" ": RULE, "t": PLAIN, "!": LIMIT}


@lru_cache(maxsize=256)
def _labelled(cells: int, rule: str, labels: tuple[tuple[str, Places], ...]) -> tuple[Segment, ...]:
    line, taken = list(rule * cells), [" "] * cells
    for style, places in labels:
        for at, text in places:
            end = at + cell_len(text)
            if at >= 0 and end <= cells and not "".join(taken[max(0, at - 1) : end + 1]).strip():
                line[at:end], taken[at:end] = text, style * (end - at)
                break
    return tuple(styled("".join(line), "".join(taken), _STYLES))


def axis(cells: int, plain: list[Places], alarming: list[Places], glyphs: Glyphs, *, bottom: str | None = "0") -> Line:
    """Return a rule of *cells* cells with labels. The *alarming* labels are placed first.

    Left of it is the gutter, with *bottom*, the figure of the scale's lower end. If that is ``None``, there is none.
    """
    labels = tuple(("!", places) for places in alarming) + tuple(("t", places) for places in plain)
    corner = "+" if glyphs.ascii else "└"
    left = [Segment(f"{bottom:>6} ", DIM), Segment(corner, RULE)] if bottom is not None else []
    return [*left, *_labelled(cells, glyphs.rule, labels)]


def label_places(at: int, tick: str, name: str, *, left: bool = False) -> Places:
    """Return the places of *name*: right of its *tick* in cell *at*; with *left*, also left of it; else the tick."""
    before = (at - len(name) - 1, f" {name}{tick}")
    return ((at, f"{tick}{name} "), *([before] if left else []), (at, tick))


def gutters(figures: dict[int, str], rows: int, glyphs: Glyphs) -> list[Line]:
    """Return what stands left of each of *rows* rows: its figure, if it has one, and the line of the scale."""
    line, tick = ("|", "+") if glyphs.ascii else ("│", "┤")
    return [
        [Segment(f"{figures.get(row, ''):>6} ", DIM), Segment(tick if row in figures else line, RULE)]
        for row in range(rows)
    ]
