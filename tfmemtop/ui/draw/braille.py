"""Paints a column of cells of the history graph: the layers of two moments as dots, or of one as glyphs.

In Braille a cell is two columns of four dots, and has one colour. So each layer also has its own texture, which is
denser for the more important layers, and an unbroken outline above it. Without Braille a cell shows one layer, by the
glyph that the bar uses.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec
from rich.style import Style

from tfmemtop.state.history import Sample
from tfmemtop.state.views import NEARLY_FULL_PERCENT
from tfmemtop.ui.draw.glyphs import CURSOR, FAILED_MARK, FILL, GROUND, LIMIT_LINE, MARK, STEPS
from tfmemtop.ui.draw.palette import BOLD, DIM, FAILED, LAYER, LIMIT, NEARLY_FULL, PLAIN
from tfmemtop.ui.draw.scale import Scale

_CODES = {
    **{"in_use": "i", "cached": "c", "rest": "r", "others": "o"},
    **{"jax": "j", "pytorch": "p", "cupy": "u", "rmm": "d"},
}
_LOOKS = {code: LAYER[kind] for kind, code in _CODES.items()} | {
    "f": NEARLY_FULL,
    "l": LIMIT,
    "m": DIM,
    "n": PLAIN,
    "s": BOLD,
    "x": FAILED,
    " ": PLAIN,
}
_LAYERS = "icjpudrof"
STYLES = _LOOKS | {code.upper(): _LOOKS[code] + Style(reverse=True) for code in _LAYERS}
"""The style of a cell by its code: first the layers, then (``f``) in use when nearly full, (``l``) the limit, (``m``) a
mark, (``n``) a note, (``s``) the time of a step, (``x``) out of memory, and (a blank) nothing. A layer under
the cursor has a capital letter."""

DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))  # left, right; bottom up
# Which of the four dots of a left and a right column belong to a layer's texture, bottom up.
_TEXTURE = {
    "i": ((1, 1, 1, 1), (1, 1, 1, 1)),
    "c": ((1, 0, 1, 0), (0, 1, 0, 1)),
    "j": ((1, 1, 0, 0), (0, 0, 1, 1)),
    "p": ((1, 0, 0, 1), (0, 1, 1, 0)),
    "u": ((1, 1, 0, 0), (1, 1, 0, 0)),
    "d": ((1, 0, 1, 1), (0, 0, 0, 1)),
    "r": ((0, 1, 0, 1), (0, 0, 0, 0)),
    "o": ((1, 0, 0, 0), (0, 0, 0, 0)),
}


def joined(dots: Sequence[int | None]) -> list[range]:
    """Return the dots of a line through *dots*, one for each half of a column, joined from each to the next."""
    ends = ([end for end in pair if end is not None] if pair[1] is not None else [] for pair in pairwise([None, *dots]))
    return [range(min(each), max(each) + 1) if each else range(0) for each in ends]


class Column(msgspec.Struct, frozen=True):
    """What a column of cells shows: the samples of its two halves, the *limit* in bytes, and what happened there.

    ``steps`` has, for each half, the dots of the line of the steps' time, counted from the bottom.
    """

    halves: tuple[Sample | None, Sample | None] = (None, None)
    limit: int | None = None
    began: bool = False  # a run
    ran_out: bool = False  # an allocation failed
    cursor: bool = False
    steps: tuple[range, range] = (range(0), range(0))


class Look(msgspec.Struct, frozen=True):
    """How columns of *rows* cells are painted. A sample has an upper end for each of *kinds*, bottom up."""

    braille: bool
    kinds: tuple[str, ...]
    rows: int
    scale: Scale

    def limit_cell(self, limit: int) -> tuple[int, str] | None:
        """Return in which row, counted from the top, the line of *limit* bytes is, and a cell that has only the line.

        ``None`` if it is off the scale, or in the lowest row, which shows memory in use.
        """
        row = self.scale.row(limit, self.rows)
        if limit > self.scale.top or row == self.rows - 1:
            return None
        dot = max(0, self.scale.units(limit, self.rows * 4) - 1) % 4
        return row, chr(0x2800 | DOTS[0][dot] | DOTS[1][dot]) if self.braille else LIMIT_LINE


@lru_cache(maxsize=2048)
def painted(column: Column, look: Look) -> tuple[str, str]:
    """Return the characters of *column*, top first, and for each of them the code of its style."""
    text, codes = (_dots if look.braille else _glyphs)(column, look)
    _draw_ground(column, look, text, codes)
    if column.ran_out or column.began:
        for row, code in enumerate(codes):
            if code == " ":
                text[row], codes[row] = MARK, "l" if column.ran_out else "m"
    if column.limit is not None:
        full = column.limit * NEARLY_FULL_PERCENT // 100
        if any(sample and sample[0] >= full for sample in column.halves):
            codes = ["f" if code == "i" else code for code in codes]
    text.reverse()
    codes.reverse()
    if column.limit is not None and (line := look.limit_cell(column.limit)):
        row, cell = line  # where the area reaches into this row, its dots stay
        text[row] = chr(ord(text[row]) | ord(cell)) if look.braille and text[row] >= "\u2800" else cell
        codes[row] = "l"
    _draw_steps(column, look, text, codes)
    if column.ran_out:
        text[0], codes[0] = FAILED_MARK, "x"
    if column.cursor:
        text = [CURSOR if code == " " else character for character, code in zip(text, codes, strict=True)]
        codes = ["n" if code == " " else code.upper() if code in _LAYERS else code for code in codes]
    return "".join(text), "".join(codes)


def _layers(sample: Sample | None, look: Look, units: int) -> str:
    """Return the layers' codes, one for each unit of height, bottom up. *units* is the height of the scale."""
    ends = [look.scale.units(end, units) for end in sample or ()]
    return "".join(
        _CODES[kind] * (upper - lower) for kind, (lower, upper) in zip(look.kinds, pairwise([0, *ends]), strict=False)
    )


def _draw_ground(column: Column, look: Look, text: list[str], codes: list[str]) -> None:
    """Draw a line in the lowest cell, if something is held there that has no height.

    If memory is in use, the line is for that, in place of another layer: users look for it.
    """
    held = [sample for sample in column.halves if sample and sample[-1] > 0]
    in_use = any(sample[0] > 0 for sample in held)
    if not held or codes[0] == "i" or (codes[0] != " " and not in_use):
        return
    sizes = [upper - lower for lower, upper in pairwise([0, *held[-1]])]
    largest = _CODES[look.kinds[sizes.index(max(sizes))]]
    text[0], codes[0] = GROUND, "i" if in_use else largest


def _draw_steps(column: Column, look: Look, text: list[str], codes: list[str]) -> None:
    """Draw the line of the steps' time over what is there; rows are counted from the top."""
    bits: dict[int, int] = {}  # by row
    for half, dots in enumerate(column.steps):
        for dot in dots:
            row = look.rows - 1 - dot // 4
            bits[row] = bits.get(row, 0) | DOTS[half][dot % 4]
    for row, drawn in bits.items():
        text[row], codes[row] = chr(0x2800 | drawn) if look.braille else STEPS, "s"


def _glyphs(column: Column, look: Look) -> tuple[list[str], list[str]]:
    left, right = column.halves
    both = tuple(map(max, left, right)) if left and right else left or right
    codes = _layers(both, look, look.rows).ljust(look.rows)
    fill = {_CODES[kind]: FILL[kind] for kind in look.kinds} | {" ": " "}
    return [fill[code] for code in codes], list(codes)


def _dots(column: Column, look: Look) -> tuple[list[str], list[str]]:
    halves = [_layers(sample, look, look.rows * 4) for sample in column.halves]
    text, codes = [" "] * look.rows, [" "] * look.rows
    for row in range(-(-max(map(len, halves)) // 4)):
        bits, shown = 0, ""
        cells = [layers[row * 4 : row * 4 + 4] for layers in halves]
        in_use_alone = row == 0 and "i" in cells[0] + cells[1]
        for half, cell in enumerate(cells):
            if in_use_alone:
                cell = cell.rstrip("cjpudro")
            above = halves[half][row * 4 + 1 : row * 4 + 5].ljust(4)
            shown += cell
            for y, code in enumerate(cell):
                if _TEXTURE[code][half][y] or above[y] != code:
                    bits |= DOTS[half][y]
        text[row] = chr(0x2800 + bits)
        codes[row] = max("icjpudro", key=shown.count)
    return text, codes
