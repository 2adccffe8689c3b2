"""A column of cells of the history graph: the layers of two moments as dots, or of one as glyphs.

In Braille a cell is two columns of four dots. It has one colour, so each layer also has a texture
of its own, denser the more it matters, under an unbroken outline: the layers stay apart in one
colour. Without Braille a cell shows one layer by the glyph that the bar uses.
"""

from dataclasses import dataclass
from itertools import pairwise

from tfmemtop.state.history import Sample
from tfmemtop.ui.palette import DIM, LAYER, LIMIT, PLAIN, Glyphs

Moments = tuple[Sample | None, Sample | None]
"""What the left and the right half of a column of cells show."""

_CODES = {"in_use": "i", "cached": "c", "rest": "r", "others": "o"}
STYLES = {code: LAYER[kind] for kind, code in _CODES.items()} | {"l": LIMIT, "m": DIM, " ": PLAIN}
"""The style of a cell by its code."""

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

    *limit* is in bytes; *marked* are the numbers of the columns that carry a mark.
    """

    glyphs: Glyphs
    braille: bool
    kinds: tuple[str, ...]
    rows: int
    top: int
    limit: int | None
    marked: frozenset[int]

    @property
    def limit_row(self) -> int | None:
        """The row, from the top, that the limit lies in; ``None`` where it is off the scale or not known."""
        unit = self._limit_unit(1)
        return None if unit is None else self.rows - 1 - unit

    def column(self, number: int, moments: Moments) -> tuple[str, str]:
        """Characters of column *number*, top first, and for each the code of its style."""
        text, codes = self._dots(moments) if self.braille else self._glyphs(moments)
        text.reverse()
        codes.reverse()
        if number in self.marked:
            for row, code in enumerate(codes):
                if code == " ":
                    text[row], codes[row] = (":" if self.glyphs.ascii else "┊"), "m"
        self._draw_limit(number, text, codes)
        return "".join(text), "".join(codes)

    def _limit_unit(self, per_row: int) -> int | None:
        """The topmost of *per_row* units a row, bottom up, that a pool as large as the limit fills."""
        if self.limit is None or not 0 <= self.limit <= self.top:
            return None
        dots = max(0, (2 * self.limit * self.rows * 4 + self.top) // (2 * self.top) - 1)
        return dots * per_row // 4

    def _draw_limit(self, number: int, text: list[str], codes: list[str]) -> None:
        """A line through blank cells; in the area a dash here and there, at its foot none: it must stay seen."""
        row, dot = self.limit_row, self._limit_unit(4)
        if row is None or dot is None:
            return
        blank = codes[row] in " m"
        every = (2 if self.glyphs.ascii else 1) if blank else 3
        if number % every or (row == self.rows - 1 and not blank):
            return
        codes[row] = "l"
        if self.braille:
            below = 0x2800 if blank else ord(text[row])
            text[row] = chr(below | _DOTS[0][dot % 4] | _DOTS[1][dot % 4])
        else:
            text[row] = "-" if self.glyphs.ascii else "╌"

    def _heights(self, sample: Sample | None, units: int) -> list[int]:
        """How many of *units* each layer takes."""
        if sample is None:
            return [0] * len(self.kinds)
        ends = [min(end, self.top) for end in sample]
        # Only the lowest layer gets a unit for nearly nothing: of one each, little would look like much, and reach
        # above a limit that it is below.
        least = min(1, units)
        rounded = [max(least * (end > 0), (2 * end * units + self.top) // (2 * self.top)) for end in ends]
        return [upper - lower for lower, upper in pairwise([0, *rounded])]

    def _layers(self, sample: Sample | None, units: int) -> str:
        """A code for each unit, bottom up, as far as the layers reach."""
        heights = self._heights(sample, units)
        return "".join(_CODES[kind] * height for kind, height in zip(self.kinds, heights, strict=False))

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
            for half, layers in enumerate(halves):
                cell = layers[row * 4 : row * 4 + 4]
                above = layers[row * 4 + 1 : row * 4 + 5].ljust(4)
                shown += cell
                for y, code in enumerate(cell):
                    if _TEXTURE[code][half][y] or above[y] != code:
                        bits |= _DOTS[half][y]
            text[row] = chr(0x2800 + bits)
            # In use is what one looks for: at the foot of the graph it shows however little it is.
            codes[row] = "i" if row == 0 and "i" in shown else max("icro", key=shown.count)
        return text, codes
