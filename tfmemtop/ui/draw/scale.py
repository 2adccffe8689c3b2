"""How high a graph reaches: the whole card, a half of it, a quarter, …: a scale that says what part it shows.

A part of the card is never filled: a graph that is full shows a card that is full.
"""

from dataclasses import dataclass
from enum import Enum

HALVINGS_MOST = 10
"""So that no less than a thousandth of a card is shown: below that nothing is worth a look."""
_WITHOUT_WHOLE = 62
_LEAST = 10  # the power of two, in bytes, of the smallest scale of a graph whose whole is not known


class Scale(Enum):
    """What the top of a graph follows."""

    AUTO = "auto"  # the highest that is drawn
    PINNED = "pinned"  # what it was when it was pinned
    WHOLE = "whole"  # the card
    IN_USE = "in use"  # the highest in use that is drawn; cached memory may reach beyond

    @property
    def remembered(self) -> "Scale":
        """What the next session begins with: what was pinned in this one says nothing there."""
        return Scale.AUTO if self is Scale.PINNED else self


@dataclass(frozen=True, slots=True)
class Top:
    """The top of a scale: ``whole`` bytes, where known, halved so many times."""

    whole: int | None
    halvings: int = 0

    @property
    def size(self) -> int:
        """Bytes; at least 1."""
        return max(1, (self.whole or 1 << _WITHOUT_WHOLE) >> self.halvings)


def fitting(highest: int, whole: int | None, before: Top | None = None) -> Top:
    """The lowest top that *highest* bytes fill to three quarters at most, or the whole.

    A top of *before* is kept as long as it is filled to between a quarter and three quarters: it does not flap.
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
