"""Paints a column of cells of the history graph: the layers of two moments as dots, or of one as glyphs.

In Braille a cell is two columns of four dots, and has one colour. So each layer also has its own texture, which is
denser for the more important layers, and an unbroken outline above it. Without Braille a cell shows one layer, by the
glyph that the bar uses.
"""

from functools import cached_property
from itertools import pairwise

import msgspec

from tfmemtop.state.history import Sample
from tfmemtop.ui.draw.palette import DIM, FAILED, LAYER, LIMIT, NEARLY_FULL, PLAIN, Glyphs

Moments = tuple[Sample | None, Sample | None]
"""What the left and the right half of a column of cells show."""

_CODES = {"in_use": "i", "cached": "c", "rest": "r", "others": "o"}
STYLES = {code: LAYER[kind] for kind, code in _CODES.items()} | {
    "f": NEARLY_FULL,
    "l": LIMIT,
    "m": DIM,
    "n": PLAIN,
    "x": FAILED,
    " ": PLAIN,
}
"""The style of a cell by its code: first the layers, then (``f``) in use when nearly full, (``l``) the limit, (``m``) a
mark, (``n``) a note, (``x``) out of memory, and (a blank) nothing."""

DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))  # left, right; bottom up
# Which of the four dots of a left and a right column belong to a layer's texture, bottom up.
_TEXTURE = {
    "i": ((1, 1, 1, 1), (1, 1, 1, 1)),
    "c": ((1, 0, 1, 0), (0, 1, 0, 1)),
    "r": ((0, 1, 0, 1), (0, 0, 0, 0)),
    "o": ((1, 0, 0, 0), (0, 0, 0, 0)),
}


class Painter(msgspec.Struct, frozen=True, dict=True):
    """Paints columns of *rows* cells on a scale of 0 to *top* bytes. Equal painters paint the same.

    *limit* is in bytes. From *nearly_full* bytes on, in use has another colour. *began* and *ran_out* are the numbers
    of the columns in which a run began and in which an allocation failed.
    """

    glyphs: Glyphs
    braille: bool
    kinds: tuple[str, ...]
    rows: int
    top: int
    limit: int | None
    nearly_full: int | None
    began: frozenset[int]
    ran_out: frozenset[int]

    @cached_property
    def limit_row(self) -> int | None:
        """The row, counted from the top, in which the limit lies; ``None`` if it is off the scale or not known."""
        unit = self._limit_unit(1)
        return None if unit is None else self.rows - 1 - unit

    def column(self, number: int, moments: Moments) -> tuple[str, str]:
        """Return the characters of column *number*, top first, and for each of them the code of its style."""
        text, codes = self._dots(moments) if self.braille else self._glyphs(moments)
        self._ground(moments, text, codes)
        text.reverse()
        codes.reverse()
        failed = number in self.ran_out
        if failed or number in self.began:
            for row, code in enumerate(codes):
                if code == " ":
                    text[row], codes[row] = self.glyphs.mark, "l" if failed else "m"
        full = self.nearly_full
        if full is not None and any(sample and sample[0] >= full for sample in moments):
            codes = ["f" if code == "i" else code for code in codes]
        self._draw_limit(text, codes)
        if failed:
            text[0], codes[0] = self.glyphs.failed, "x"
        return "".join(text), "".join(codes)

    def _limit_unit(self, per_row: int) -> int | None:
        """Return the topmost unit that a pool as large as the limit fills, counted from the bottom.

        A row has *per_row* units. ``None`` if the limit is off the scale or not known.
        """
        if self.limit is None or self.limit > self.top:
            return None
        dots = max(0, (2 * self.limit * self.rows * 4 + self.top) // (2 * self.top) - 1)
        return dots * per_row // 4

    def _draw_limit(self, text: list[str], codes: list[str]) -> None:
        """Draw the limit as an unbroken line. Where the area reaches into its row, the area's dots stay.

        In the lowest row no line is drawn: memory in use is shown there, and the figure at the left shows the limit.
        """
        row, dot = self.limit_row, self._limit_unit(4)
        if row is None or dot is None or row == self.rows - 1:
            return
        if self.braille:
            below = ord(text[row]) if text[row] >= "\u2800" else 0x2800
            text[row] = chr(below | DOTS[0][dot % 4] | DOTS[1][dot % 4])
        else:
            text[row] = self.glyphs.limit_line
        codes[row] = "l"

    def _layers(self, sample: Sample | None, units: int) -> str:
        """Return the layers' codes, one for each unit of height, bottom up. *units* is the height of the scale."""
        if sample is None:
            return ""
        ends = [(2 * min(end, self.top) * units + self.top) // (2 * self.top) for end in sample]
        return "".join(
            _CODES[kind] * (upper - lower)
            for kind, (lower, upper) in zip(self.kinds, pairwise([0, *ends]), strict=False)
        )

    def _ground(self, moments: Moments, text: list[str], codes: list[str]) -> None:
        """Draw a line in the lowest cell, if something is held there that has no height.

        If memory is in use, the line is for that, in place of another layer: users look for it.
        """
        held = [sample for sample in moments if sample and sample[-1] > 0]
        in_use = any(sample[0] > 0 for sample in held)
        if not held or codes[0] == "i" or (codes[0] != " " and not in_use):
            return
        text[0], codes[0] = self.glyphs.ground, "i" if in_use else self._largest(held[-1])

    def _largest(self, sample: Sample) -> str:
        sizes = [upper - lower for lower, upper in pairwise([0, *sample])]
        return _CODES[self.kinds[sizes.index(max(sizes))]]

    def _glyphs(self, moments: Moments) -> tuple[list[str], list[str]]:
        left, right = moments
        both = tuple(map(max, left, right)) if left and right else left or right
        codes = self._layers(both, self.rows).ljust(self.rows)
        fill = {_CODES[kind]: self.glyphs.fill[kind] for kind in self.kinds} | {" ": " "}
        return [fill[code] for code in codes], list(codes)

    def _dots(self, moments: Moments) -> tuple[list[str], list[str]]:
        halves = [self._layers(sample, self.rows * 4) for sample in moments]
        text, codes = [" "] * self.rows, [" "] * self.rows
        for row in range(-(-max(map(len, halves)) // 4)):
            bits, shown = 0, ""
            cells = [layers[row * 4 : row * 4 + 4] for layers in halves]
            in_use_alone = row == 0 and "i" in cells[0] + cells[1]
            for half, cell in enumerate(cells):
                if in_use_alone:
                    cell = cell.rstrip("cro")
                above = halves[half][row * 4 + 1 : row * 4 + 5].ljust(4)
                shown += cell
                for y, code in enumerate(cell):
                    if _TEXTURE[code][half][y] or above[y] != code:
                        bits |= DOTS[half][y]
            text[row] = chr(0x2800 + bits)
            codes[row] = max("icro", key=shown.count)
        return text, codes
