"""What is usual among the ranks of a job, and whether a rank differs from that by more than ranks usually do. Pure."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from tfmemtop.units import MIB

SHARE = 0.05
LEAST = 16 * MIB
"""Up to this share of the usual figure, or up to so many bytes, a difference does not count."""
_SPREADS = 3
"""A difference counts only if the rank is so many times as far from the median as ranks usually are."""


class Usual(NamedTuple):
    """The usual ``value`` of a figure, and the ``spread``: how far ranks usually are from it."""

    value: float
    spread: float

    def excludes(self, value: float, least: float = LEAST) -> bool:
        """Return whether *value* is unusual. It is not if it differs by at most *least*."""
        return abs(value - self.value) > max(SHARE * self.value, least, _SPREADS * self.spread)


def usual_of(values: Sequence[float]) -> Usual:
    """Return what is usual of the *values* of all ranks."""
    middle = median(values)
    return Usual(middle, median(abs(value - middle) for value in values))


def usual_beside(mine: float, others: Sequence[float]) -> Usual:
    """Return what is usual for a rank that has *mine*: the median, or what the only other rank has."""
    middle = median([*others, mine]) if len(others) > 1 else others[0]
    return Usual(middle, median(abs(value - middle) for value in others) if len(others) > 2 else 0)
