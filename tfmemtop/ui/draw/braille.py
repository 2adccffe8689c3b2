"""A column of cells of the history graph: the layers of two moments as dots, or of one as glyphs.

In Braille a cell is two columns of four dots. It has one colour, so each layer also has a texture
of its own, denser the more it matters, under an unbroken outline: the layers stay apart in one
colour. Without Braille a cell shows one layer by the glyph that the bar uses.
"""

from dataclasses import dataclass
from itertools import pairwise

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
"""The style of a cell by its code: a layer; in use, nearly full; the limit; a mark; a note; out of memory; none."""

_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))  # left, right; bottom up
# Which of the four dots of a left and a right column belong to a layer's texture, bottom up.
_TEXTURE = {
    "i": ((1, 1, 1, 1), (1, 1, 1, 1)),
    "c": ((1, 0, 1, 0), (0, 1, 0, 1)),
    "r": ((0, 1, 0, 1), (0, 0, 0, 0)),
    "o": ((1, 0, 0, 0), (0, 0, 0, 0)),
}


@dataclass(frozen=True)
class Painter:
    """Paints columns of *rows* cells on a scale of 0 to *top* bytes; equal ones paint alike.

    *limit* is in bytes; from *nearly_full* bytes on in use has another colour. *began* and *ran_out* are the numbers
    of the columns in which a run began and an allocation failed.
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

    @property
    def limit_row(self) -> int | None:
        """The row, from the top, that the limit lies in; ``None`` where it is off the scale or not known."""
        unit = self._limit_unit(1)
        return None if unit is None else self.rows - 1 - unit

    def column(self, number: int, moments: Moments) -> tuple[str, str]:
        """Characters of column *number*, top first, and for each the code of its style."""
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
        """The topmost of *per_row* units a row, bottom up, that a pool as large as the limit fills."""
        if self.limit is None or not 0 <= self.limit <= self.top:
            return None
        dots = max(0, (2 * self.limit * self.rows * 4 + self.top) // (2 * self.top) - 1)
        return dots * per_row // 4

    def _draw_limit(self, text: list[str], codes: list[str]) -> None:
        """An unbroken line; where the area reaches it the line is as thick as the area there.

        None in the lowest row: what is in use stands there, and the figure at the left tells the limit.
        """
        row, dot = self.limit_row, self._limit_unit(4)
        if row is None or dot is None or row == self.rows - 1:
            return
        if self.braille:
            below = ord(text[row]) if text[row] >= "\u2800" else 0x2800
            text[row] = chr(below | _DOTS[0][dot % 4] | _DOTS[1][dot % 4])
        else:
            text[row] = self.glyphs.limit_line
        codes[row] = "l"

    def _layers(self, sample: Sample | None, units: int) -> str:
        """A code for each of *units*, bottom up, as far as the layers reach."""
        if sample is None:
            return ""
        ends = [(2 * min(end, self.top) * units + self.top) // (2 * self.top) for end in sample]
        return "".join(
            _CODES[kind] * (upper - lower)
            for kind, (lower, upper) in zip(self.kinds, pairwise([0, *ends]), strict=False)
        )

    def _ground(self, moments: Moments, text: list[str], codes: list[str]) -> None:
        """The lowest cell: in use, which one looks for, has it alone; what has no height is a line on the ground."""
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
                        bits |= _DOTS[half][y]
            text[row] = chr(0x2800 + bits)
            codes[row] = max("icro", key=shown.count)
        return text, codes
