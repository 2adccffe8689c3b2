"""How far a search may rely on what is predicted: never much worse than doubling, and halving then. Pure.

Without any prediction a value is doubled until it fails, and what lies between is halved by powers: each such try
halves what is not known yet, in octaves. A try at a predicted value may do better or worse than that. What it loses is
taken from a credit of about two tries; what it gains is added. A value that could lose more than is left is not tried.
"""

from collections.abc import Iterable
from math import log2

_FIRST, _MOST = 1.7, 4.0
"""Tries: the credit at the start, and the most that it becomes."""

_FAILED = 0.85
"""Tries, that one costs far above what is known to pass, if it fails."""

_DOUBLED = 2.0  # octaves between a value that passed and one that failed, above which doubling is no worse than halving


def left(tried: Iterable[tuple[int, bool]]) -> float:
    """The credit after *tried*, values with whether they passed, in their order. Up to the first that passed all are
    free: until then nothing is predicted."""
    credit, low, high = _FIRST, None, None
    for value, passed in tried:
        if low is not None:
            credit = min(_MOST, credit + _gained(low, high, value, passed))
        elif passed and high is not None:
            credit -= max(0.0, log2(high / value) - 1)  # halving had taken less at once
        if passed and (low is None or value > low):
            low = value
        elif not passed and (high is None or value < high):
            high = value
    return credit


def _gained(low: int, high: int | None, value: int, passed: bool) -> float:
    """In tries, by one at *value*, which is between *low* and *high*."""
    above = log2(max(value, low + 1) / low)
    if high is None or log2(high / low) > _DOUBLED:
        if passed:
            return above - 1
        return -_FAILED if above > 1 else -log2(above)
    whole = log2(high / low)
    rest = whole - above if passed else above
    return log2(whole / max(rest, whole / 1024)) - 1


def within(wanted: int | None, low: int, high: int, *, fails: bool, credit: float) -> int:
    """The value nearest to *wanted* that loses no more than *credit*; without one, the double or the middle.

    It is above *low*, which passed, and below *high*, of which *fails* says whether it failed, or is beyond the range.
    """
    whole = log2(high / low)
    if not fails or whole > _DOUBLED:
        least, most = low * 2 ** max(0.0, 1 - credit), float(high) if credit >= _FAILED else low * 2
        chosen: float = low * 2 if wanted is None else wanted
    else:
        share = 2 ** (min(1.0, max(0.0, credit)) - 1)
        least, most = low * 2 ** (whole * (1 - share)), low * 2 ** (whole * share)
        chosen = round(low * 2 ** (whole / 2)) if wanted is None else wanted
    chosen = round(min(max(chosen, least), most))
    return min(max(chosen, low + 1), high - 1)
