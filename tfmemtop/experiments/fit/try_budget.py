"""Limits how far a search relies on predictions, so that it never takes many more tries than without them. Pure.

Without a prediction, a value is doubled until it fails. Then the range between the last two values is halved on a
logarithmic scale, so that each try halves the unknown range in octaves. A try at a predicted value may do better or
worse than that. Its loss, in tries, is taken from a credit of about two tries, and its gain is added. A value that
could lose more than the credit is not tried.
"""

from collections.abc import Iterable
from math import log2

_FIRST, _MOST = 1.7, 4.0
"""The credit at the start, and the highest credit; in tries."""

_FAILED = 0.85
"""The loss, in tries, if a try fails at a value far above the largest that is known to pass."""

_DOUBLED = 2.0  # octaves: if a passed and a failed value are further apart, doubling is no worse than halving


def left(tried: Iterable[tuple[int, bool]]) -> float:
    """Return the credit, in tries, after *tried*: the values in their order, each with whether it passed.

    The tries up to the first that passed cost nothing, because nothing is predicted until then.
    """
    credit, low, high = _FIRST, None, None
    for value, passed in tried:
        if low is not None:
            credit = min(_MOST, credit + _gained(low, high, value, passed))
        elif passed and high is not None:
            credit -= max(0.0, log2(high / value) - 1)  # a try in the middle would have left less
        if passed and (low is None or value > low):
            low = value
        elif not passed and (high is None or value < high):
            high = value
    return credit


def _gained(low: int, high: int | None, value: int, passed: bool) -> float:
    """Return the gain, in tries, of one try at *value*, which is between *low* and *high*; negative for a loss."""
    above = log2(max(value, low + 1) / low)
    if high is None or log2(high / low) > _DOUBLED:
        if passed:
            return above - 1
        return -_FAILED if above > 1 else -log2(above)
    whole = log2(high / low)
    rest = whole - above if passed else above
    return log2(whole / max(rest, whole / 1024)) - 1


def within(wanted: int | None, low: int, high: int, *, fails: bool, credit: float) -> int:
    """Return the value nearest to *wanted* that cannot lose more than *credit*.

    If *wanted* is ``None``, it starts from the double of *low* or the middle instead. The value is above *low*, which
    passed, and below *high*. *fails*: *high* has failed; otherwise it is the first value beyond the range.
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
