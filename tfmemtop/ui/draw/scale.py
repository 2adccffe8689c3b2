"""The scale at the left of a graph, and the line under it with its labels.

The scale says how high a size is drawn, and which sizes the figures name.

A linear scale reaches from 0 to the whole card, a half of it, a quarter, …: the automatic scale never lets a part of
the card be filled, so a graph that is full shows a card that is full. A logarithmic scale reaches from a ten-thousandth
of the card to the card: there, twice as much is always the same step up, so small and large are seen together.
"""

import math
from enum import Enum
from functools import lru_cache

import msgspec
from rich.cells import cell_len
from rich.segment import Segment

from tfmemtop.ui.draw.glyphs import LINE
from tfmemtop.ui.draw.lines import Line, styled
from tfmemtop.ui.draw.palette import DIM, LIMIT, PLAIN, RULE
from tfmemtop.units import format_short

_HALVINGS_MOST = 10  # a linear scale shows at least a thousandth of a card, since less is not worth showing
_WITHOUT_WHOLE = 62  # the power of two, in bytes, of which a scale is a part if the card's size is not known
_LEAST = 10  # the power of two, in bytes, of the smallest scale then
_FAR_APART = 30  # factor between the card and what is in use from which the automatic scale is logarithmic
_DECADES = 14  # doublings from the bottom to the top of a logarithmic scale, at least
_STEPS = (1, 2, 3, 5, 10)  # doublings from figure to figure of a logarithmic scale; each of them meets 1 GiB
_DISTANCE = 2  # rows from figure to figure, at least


class ScaleChoice(Enum):
    """The scales among which the user chooses, in the order of the key."""

    AUTO = "auto"  # logarithmic if card and in use are far apart, else linear
    WHOLE = "whole"  # linear, up to the card
    LOG = "log"
    LINEAR = "linear"  # up to what is drawn


class Scale(msgspec.Struct, frozen=True):
    """A scale from ``bottom`` to ``top`` bytes; it is logarithmic if ``bottom`` is not 0.

    ``whole`` is the size of the card in bytes; ``None`` if it is not known.
    """

    top: int
    bottom: int = 0
    whole: int | None = None

    def units(self, size: int, height: int) -> int:
        """Return how many of *height* units *size* bytes fill, to the nearest one."""
        if not self.bottom:
            return (2 * min(size, self.top) * height + self.top) // (2 * self.top)
        if size <= self.bottom:
            return 0
        return round(height * math.log(min(size, self.top) / self.bottom) / math.log(self.top / self.bottom))

    def row(self, size: int, rows: int) -> int:
        """Return in which of *rows* rows, counted from the top, lies the upper end of what *size* bytes fill."""
        return rows - 1 - max(0, self.units(size, rows * 4) - 1) // 4

    def figures(self, rows: int) -> dict[int, str]:
        """Return the figures at the left of a graph, by row: at its top, and between as many as have room."""
        if not self.bottom:
            between = [self.top // 2] if rows >= 7 else []
        else:
            exponents = range(self.bottom.bit_length(), self.top.bit_length())
            step = next((step for step in _STEPS if rows * step >= _DISTANCE * len(exponents)), _STEPS[-1])
            between = [1 << exponent for exponent in exponents if exponent % step == 0]
        found = {self.row(size, rows): format_short(size) for size in between}
        return {0: format_short(self.top)} | {row: found[row] for row in found if _DISTANCE <= row < rows - 1}

    @property
    def bottom_figure(self) -> str:
        """The figure at the lower end: ``0``, or, since a logarithmic scale never reaches 0, ``8.0M``."""
        return format_short(self.bottom) if self.bottom else "0"

    @property
    def text(self) -> str:
        """The scale in words: ``scale: 1/64 of 140.4G``, ``scale: all 140.4G``, ``scale: log``."""
        if self.bottom:
            return "scale: log"
        if self.whole is None:
            return "scale: what is used"
        part = "all" if self.top == self.whole else f"1/{self.whole // self.top} of"
        return f"scale: {part} {format_short(self.whole)}"


def scale(choice: ScaleChoice, in_use: int, highest: int, whole: int | None, before: Scale | None = None) -> Scale:
    """Return the scale for a graph with *highest* bytes at most, of them *in_use* in use, on a card of *whole* bytes.

    The scale *before* is kept while it fits, so that it does not change back and forth. Where nothing is used, the
    automatic scale is the whole card.
    """
    nothing = choice is ScaleChoice.AUTO and not highest
    if whole and (choice is ScaleChoice.WHOLE or nothing):
        return Scale(whole, 0, whole)
    known = before if before and before.whole == whole else None
    most = _FAR_APART // 2 if known and known.bottom else _FAR_APART
    far_apart = bool(whole and in_use and whole >= most * in_use)
    if choice is ScaleChoice.LOG or (choice is ScaleChoice.AUTO and far_apart):
        top = whole or fitting(highest, None).top
        return Scale(top, 1 << max(0, top.bit_length() - 1 - _DECADES), whole)
    return fitting(highest, whole, None if known and known.bottom else known)


def fitting(highest: int, whole: int | None, before: Scale | None = None) -> Scale:
    """Return the lowest linear scale that *highest* bytes fill to at most three quarters; else that of the *whole*.

    The linear scale *before* is kept while it is filled to between a quarter and three quarters.
    """
    full = whole or 1 << _WITHOUT_WHOLE
    most = _HALVINGS_MOST if whole else _WITHOUT_WHOLE - _LEAST
    halvings = max(0, (full // before.top).bit_length() - 1) if before else most
    while halvings > 0 and 4 * highest > 3 * (full >> halvings):
        halvings -= 1
    while before and halvings < most and 4 * highest < full >> halvings:
        halvings += 1
    return Scale(max(1, full >> halvings), 0, whole)


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


def axis(cells: int, plain: list[Places], alarming: list[Places], *, bottom: str | None = "0") -> Line:
    """Return a rule of *cells* cells with labels. The *alarming* labels are placed first.

    Left of it is the gutter, with *bottom*, the figure of the scale's lower end. If that is ``None``, there is none.
    """
    labels = tuple(("!", places) for places in alarming) + tuple(("t", places) for places in plain)
    left = [Segment(f"{bottom:>6} ", DIM), Segment("└", RULE)] if bottom is not None else []
    return [*left, *_labelled(cells, LINE, labels)]


def label_places(at: int, tick: str, name: str) -> Places:
    """Return the places of *name*: right of its *tick* in cell *at*, left of it, or the tick alone."""
    return ((at, f"{tick}{name} "), (at - len(name) - 1, f" {name}{tick}"), (at, tick))


def gutters(figures: dict[int, str], rows: int) -> list[Line]:
    """Return what stands left of each of *rows* rows: its figure, if it has one, and the line of the scale."""
    return [
        [Segment(f"{figures.get(row, ''):>6} ", DIM), Segment("┤" if row in figures else "│", RULE)]
        for row in range(rows)
    ]
