"""Whether a series of readings rises steadily. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tfmemtop.state.trend import Window

_STEADY = 0.9
_JUMP = 0.4
_LAG = 3

BEGINS = (0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Shares of the time that are left out at its beginning: a model is made, or a first phase of the script."""

LEAST_WINDOWS = 16
"""Fewer do not tell a slope from a few jumps."""


@dataclass(frozen=True, slots=True)
class Rise:
    """Memory that rose from ``start`` to ``end``, in seconds, and was not given back: from ``first`` to ``last`` bytes.

    ``rate`` is the slope in bytes a second. ``highs`` are the highest use at the beginning and at the end of that time;
    it was cut in so many ``windows``.
    """

    start: float
    end: float
    first: int
    last: int
    rate: float
    highs: tuple[int, int]
    windows: int

    @property
    def span_s(self) -> float:
        return self.end - self.start

    @property
    def size(self) -> int:
        """Bytes. What the last step had not given back yet is not counted."""
        return min(self.last - self.first, int(self.rate * self.span_s))


def rise_until(
    histories: Iterable[Iterable[Window]], end: float = float("inf"), least: int = LEAST_WINDOWS
) -> Rise | None:
    """The steady rise that went on to the *end*, in seconds: of the whole time if it was one, else of a later part.

    It must be seen in *least* stretches of time of one of the *histories*.
    """
    for windows in histories:
        before = [window for window in windows if window.start < end]
        for share in BEGINS:
            if found := _rise(before[int(len(before) * share) :], least):
                return found
    return None


def _rise(windows: Sequence[Window], least: int) -> Rise | None:
    if len(windows) < least:
        return None
    kept = retained(window.low for window in windows)
    if not rises(kept):
        return None
    first, last = windows[0], windows[-1]
    highs = first.high, last.high
    return Rise(first.start, last.start, kept[0], kept[-1], slope(windows, kept), highs, len(windows))


def retained(lows: Iterable[int]) -> list[int]:
    """Of each moment's use, what was still there ever after: what a step gives back at its end is not in it."""
    return list(accumulate(reversed(list(lows)), min))[::-1]


def merged(windows: Sequence[Window], times: int) -> list[Window]:
    """Stretches of so many *windows* each, up to the newest: what rises once an epoch rises in each that holds one."""
    first = len(windows) % times
    groups = [windows[at : at + times] for at in range(first, len(windows), times)]
    return [Window(group[0].start, min(one.low for one in group), max(one.high for one in group)) for group in groups]


def rises(values: list[int]) -> bool:
    """Whether they rise steadily: not in a few jumps, and not ever more slowly, as while a script warms up."""
    whole = values[-1] - values[0]
    if whole <= 0:
        return False
    pairs = list(zip(values, values[_LAG:], strict=False))
    steady = sum(1 for before, after in pairs if after > before) >= _STEADY * len(pairs)
    jump = max(after - before for before, after in pairwise(values))
    middle = values[len(values) // 2]
    goes_on = values[-1] - middle >= (middle - values[0]) / 2
    return steady and goes_on and jump <= _JUMP * whole


def slope(windows: Sequence[Window], values: Sequence[int]) -> float:
    """Bytes a second: the median over pairs half the series apart, which a spike does not move."""
    half = len(values) // 2
    points = list(zip((window.start for window in windows), values, strict=True))
    pairs = zip(points, points[half:], strict=False)
    slopes = sorted((after - before) / (end - start) for (start, before), (end, after) in pairs)
    return slopes[len(slopes) // 2]
