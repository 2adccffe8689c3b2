"""How high a graph reaches: the whole card, a half of it, a quarter, …. The graph's axis names this part.

The automatic scale never lets a part of the card be filled: a graph that is full shows a card that is full.
"""

from enum import Enum

import msgspec

from tfmemtop.units import format_short

HALVINGS_MOST = 10
"""The most halvings. A graph shows at least a thousandth of a card, since less is not worth showing."""
_WITHOUT_WHOLE = 62
_LEAST = 10  # the power of two, in bytes, of the smallest scale of a graph whose whole is not known


class Scale(Enum):
    """What the top of a graph depends on."""

    AUTO = "auto"  # the highest value that is drawn
    PINNED = "pinned"  # nothing: the top stays as it was when it was pinned
    WHOLE = "whole"  # the card
    IN_USE = "in use"  # the highest in use that is drawn; cached memory may reach beyond

    @property
    def remembered(self) -> "Scale":
        """The scale with which the next session begins. A top that was pinned in this session has no meaning there."""
        return Scale.AUTO if self is Scale.PINNED else self


class Top(msgspec.Struct, frozen=True):
    """The top of a scale: ``whole`` bytes, halved ``halvings`` times. ``whole`` is ``None`` if it is not known."""

    whole: int | None
    halvings: int = 0

    @property
    def size(self) -> int:
        """Bytes; at least 1."""
        return max(1, (self.whole or 1 << _WITHOUT_WHOLE) >> self.halvings)

    def text(self, follows: str = "") -> str:
        """Return ``scale: 1/64 of 140.4G``, ``scale: all 140.4G``; *follows* is a word for what sets the scale."""
        name = f"scale ({follows}):" if follows else "scale:"
        if self.whole is None:
            return f"{name} what is used"
        part = f"1/{1 << self.halvings} of" if self.halvings else "all"
        return f"{name} {part} {format_short(self.whole)}"


def fitting(highest: int, whole: int | None, before: Top | None = None) -> Top:
    """Return the lowest top that *highest* bytes fill to at most three quarters; the whole, if they fill more of it.

    The top *before* is kept while it is filled to between a quarter and three quarters, so that the scale does not
    change back and forth.
    """
    whole = whole or None
    most = HALVINGS_MOST if whole else _WITHOUT_WHOLE - _LEAST
    known = before is not None and before.whole == whole
    top = before if before is not None and known else Top(whole, most)
    while top.halvings > 0 and 4 * highest > 3 * top.size:
        top = Top(whole, top.halvings - 1)
    while known and top.halvings < most and 4 * highest < top.size:
        top = Top(whole, top.halvings + 1)
    return top
