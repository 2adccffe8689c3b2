"""Which value of a number in the command to try next, to find the largest under which it still works. Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tfmemtop.fit.credit import left, within
from tfmemtop.fit.search import Tried

VALUES_MOST = 2**40

CLOSE = 50
"""The search ends when a value that works and one that does not differ by at most a 50th, or by 1."""

_BACK = 12
"""Where a prediction failed, the next try is a 25th below it: fragmentation and rounding take a few percent."""

_BACK_FAR = 5
"""The same where it was predicted by replays of runs far below: what these need besides the batch weighs much there."""

_LESS = 3
"""Percent: where a value failed that should have passed, the next is so much below."""

_NEAR = 4
"""So many times what the search may end at, a prediction is no better than what has passed."""

_FAR = 8  # times

_WRONG = 1.5
"""Times: what has failed so far below a prediction refutes it."""

_ABOVE = 1.02
"""The smallest limit that really passes, as a multiple of the lower end of what is predicted."""

_BEFORE = 0.85
"""After a single try that passed, the next is so much of what it lets expect: two that passed say more than one."""

_APART = 1.1
"""But at least so many times the one that passed, if that is not more than expected."""

_SECOND = 2
"""The second value is at most so many times the first, and one more, so that equal sizes are not what has doubled."""

_TWO = 1.7
"""The credit that is enough for two small steps upward."""

_PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")
_RANGE = re.compile(r"([A-Za-z_]\w*)=(\d{1,13})\.\.(\d{1,13})")


class Wanted(msgspec.Struct, frozen=True):
    """The largest value of ``name`` is wanted, from ``lowest`` to ``highest``.

    It stands as ``{name}`` in the command.
    """

    name: str
    lowest: int
    highest: int

    def placed(self, command: list[str], value: int) -> list[str]:
        """*command* with *value* in its place."""
        return [word.replace(f"{{{self.name}}}", str(value)) for word in command]

    def is_in(self, command: Sequence[str]) -> bool:
        """Whether *command* has a place for it."""
        return any(f"{{{self.name}}}" in word for word in command)


def places(command: Sequence[str]) -> list[str]:
    """The names that stand in braces in *command*, such as ``batch`` in ``--batch-size={batch}``."""
    return list(dict.fromkeys(name for word in command for name in _PLACE.findall(word)))


def parse_wanted(text: str) -> Wanted | None:
    """What ``batch=1..4096`` asks for; ``None`` if it has another form or its bounds make no range."""
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        return None
    wanted = Wanted(found[1], int(found[2]), int(found[3]))
    return wanted if 1 <= wanted.lowest < wanted.highest <= VALUES_MOST else None


class TriedValue(msgspec.Struct, frozen=True):
    """How a try with ``value`` went, under the allocator's ``limit`` in bytes, ``None`` if that is not known."""

    value: int
    tried: Tried
    limit: int | None


class Growth(msgspec.Struct, frozen=True):
    """The peak in use as a line through two tries: ``fixed`` bytes whatever the value, and ``each`` for every one."""

    fixed: float
    each: float

    def largest(self, limit: int) -> int:
        """The largest value that *limit* bytes would hold by this line."""
        return int((limit - self.fixed) / self.each)


def _line(points: Sequence[tuple[int, float]]) -> Growth | None:
    """Through two values and what they need; ``None`` if it does not rise."""
    (value, need), (larger, more) = points
    each = (more - need) / (larger - value)
    return Growth(more - each * larger, each) if each > 0 else None


class Prediction(NamedTuple):
    """By replays with other values: up to ``surely`` all pass, ``likely`` is the largest that does, and ``at_most`` the
    one above which none does. ``values`` are those of the two tries that were replayed."""

    surely: int
    likely: int
    at_most: int
    values: tuple[int, int]


class LargestSearch:
    """Asks for one try after another, until the largest value that works is known closely enough."""

    def __init__(self, wanted: Wanted, tries: int) -> None:
        self.wanted = wanted
        self._tries = tries
        self.tried: list[TriedValue] = []
        self.prediction: Prediction | None = None
        """By the replays of the tries so far."""
        self.first_prediction: Prediction | None = None
        """By those of the first two that passed and could be used."""
        self.trouble = ""
        """Why the replays with other values failed, if they did."""

    @property
    def works(self) -> int | None:
        """The largest value that worked with none below it failing."""
        fails = self.fails or VALUES_MOST + 1
        return max((one.value for one in self.tried if one.tried.passed and one.value < fails), default=None)

    @property
    def fails(self) -> int | None:
        """The smallest value that did not work."""
        return min((one.value for one in self.tried if not one.tried.passed and one.tried.how.proves), default=None)

    @property
    def unproved(self) -> TriedValue | None:
        """The try that proved nothing, with which the search ended; ``None`` if there was none."""
        return self.tried[-1] if self.tried and not self.tried[-1].tried.how.proves else None

    @property
    def limit(self) -> int | None:
        """The allocator's limit in these tries, in bytes."""
        return next((one.limit for one in reversed(self.tried) if one.limit is not None), None)

    @property
    def growth(self) -> Growth | None:
        """How the peak grows with the value, by the two largest values that worked; ``None`` if it does not grow."""
        known = {one.value: one.tried.peak_in_use for one in self.tried if one.tried.passed}
        points = sorted((value, peak) for value, peak in known.items() if peak is not None)[-2:]
        return _line(points) if len(points) == 2 else None

    @property
    def told_growth(self) -> Growth | None:
        """The same to be told: by the largest value that worked, and the next one of at most half of it.

        Near the limit a peak says little: an allocation that fits only just gets a smaller chunk.
        """
        peaks = {one.value: one.tried.peak_in_use for one in self.tried if one.tried.passed}
        known = {value: peak for value, peak in peaks.items() if peak is not None}
        top = max(known, default=0)
        low = max((value for value in known if 2 * value <= top), default=None)
        return self.growth if low is None else _line([(low, known[low]), (top, known[top])])

    @property
    def predicted(self) -> int | None:
        """The largest value by the replays, or else by the line of what is needed; ``None`` if it cannot be told."""
        if self.prediction is not None:
            return self.prediction.likely
        growth, limit = self._needed, self.limit
        return growth.largest(limit) if growth is not None and limit is not None else None

    @property
    def _needed(self) -> Growth | None:
        """How the smallest limit that passes grows with the value, where all tries tell it; else how the peak does."""
        told = {one.value: one.tried.at_least for one in self.tried if one.tried.passed}
        points = sorted((value, least * _ABOVE) for value, least in told.items() if least is not None)[-2:]
        return _line(points) if len(points) == 2 and None not in told.values() else self.growth

    def _from_one(self) -> int | None:
        """Where to try after a single value that passed: by what of it was kept between steps, as far as is known."""
        passed, limit = [one for one in self.tried if one.tried.passed], self.limit
        if len(passed) != 1 or limit is None:
            return None
        one = passed[0]
        least, kept = one.tried.at_least, one.tried.kept
        if least is None or kept is None or not kept < least < limit:
            return None
        expected = one.value * (limit - kept) / (least * _ABOVE - kept)
        before = max(expected * _BEFORE, min(expected, one.value * _APART))
        return min(int(before), int(one.value * _SECOND) + 1)

    def tell(self, tried: TriedValue) -> None:
        """Take in how the try went that :meth:`next` asked for."""
        self.tried.append(tried)

    def expect(self, prediction: Prediction) -> None:
        """Take in what the replays of the tries up to now predict."""
        self.prediction = prediction
        self.first_prediction = self.first_prediction or prediction

    @property
    def settled(self) -> bool:
        """Whether it is known as closely as is asked for."""
        return bool(self.tried) and self.unproved is None and self._candidate() is None

    def next(self) -> int | None:
        """The value to try now; ``None`` if another try is not worth it, or not allowed."""
        return self._candidate() if len(self.tried) < self._tries and self.unproved is None else None

    def _candidate(self) -> int | None:
        if not self.tried:
            return self._first()
        wanted, works, fails = self.wanted, self.works, self.fails
        low = wanted.lowest - 1 if works is None else works
        high = wanted.highest + 1 if fails is None else fails
        if high - low <= (1 if works is None or fails is None else max(1, works // CLOSE)):
            return None
        candidate: int | None
        if self.prediction is not None:
            candidate = self._as_predicted(self.prediction, low, high)
        else:
            candidate = self._beside_the_prediction(low, high) if self._from_one() is None else self._near_one(high)
        if candidate is not None and not low < candidate < high:
            candidate = None
        if works is None:
            return min(max(candidate or high // 4, low + 1), high - 1)
        if len(self.tried) == 1:
            return min(max(candidate or self._more(low), low + 1), high - 1)
        credit = left((one.value, one.tried.passed) for one in self.tried)
        likely = self.predicted
        if fails is None and credit < _TWO and likely is not None and low < likely < 2 * low:
            # That it fails tells most.
            close = max(1, low // CLOSE)
            candidate = low + close if likely <= low + close else likely + max(1, likely // CLOSE)
        return within(candidate, low, high, fails=fails is not None, credit=credit)

    def _as_predicted(self, prediction: Prediction, low: int, high: int) -> int | None:
        """Between what surely passes and what is likely; near a value that passed, so little above it as may end it.

        ``None`` if it has come otherwise than predicted.
        """
        close = max(1, low // CLOSE)
        top, sure = min(high, prediction.likely), max(low, prediction.surely)
        if low + close < sure < high <= low + _NEAR * close:
            return sure
        if high - low <= _NEAR * close or top <= low + close * 3 // 2:
            return low + close
        if self.tried[-1].tried.passed:
            if top == high:
                return sure if sure > low + close else (sure + top) // 2
            # The first prediction is from far below, the next ones are better.
            first = prediction is self.first_prediction
            return max(low + close, (sure + top) // 2 if first else (sure + 3 * top) // 4)
        less = sure - max(1, sure * _LESS // 100) if prediction is self.first_prediction else sure
        return less if low < less < sure + 1 <= high else None

    def _beside_the_prediction(self, low: int, high: int) -> int | None:
        """The prediction, or if that has been tried a value beside it, farther away each time; ``None`` without one."""
        if (predicted := self.predicted) is None:
            return None
        if low < predicted < high:
            # Too near to one that failed or passed, it would tell little.
            if self.fails is not None and predicted > high - max(1, high // _BACK):
                return None
            return max(predicted, low + max(1, low // CLOSE))
        passed = self.tried[-1].tried.passed
        if predicted <= low:
            return low + (max(1, low // CLOSE) << self._alike(predicted) - 1) if passed else None
        if self.fails is None:
            return self.wanted.highest
        if passed or predicted > _WRONG * self.fails:
            return None
        replayed = any(one.tried.at_least is not None for one in self.tried)
        back = _BACK_FAR if replayed and _FAR * low < predicted else _BACK
        return high - (max(1, high // back) << self._alike() - 1)

    def _near_one(self, high: int) -> int | None:
        """What a single value that passed lets expect; a fifth less each time that this has failed."""
        expected = self._from_one()
        return expected if expected is None or self.fails is None else min(expected, high - high // _BACK_FAR)

    def _more(self, low: int) -> int:
        """More than *low*, the largest that passed, where nothing is known to fail."""
        alone = len(self.tried) == 1 and self.tried[0].tried.at_least is not None
        return int(low * _SECOND) + 1 if alone else low * 2

    def _first(self) -> int:
        """The power of two in the middle of the range, by powers."""
        wanted = self.wanted
        middle = 1 << (wanted.lowest.bit_length() + wanted.highest.bit_length()) // 2 - 1
        return min(max(middle, wanted.lowest), wanted.highest)

    def _alike(self, least: int = 0) -> int:
        """How many of the last tries, one after the other, went as the very last; 1 or more.

        Only values of *least* or more count.
        """
        count = 0
        for one in reversed(self.tried):
            if one.tried.passed != self.tried[-1].tried.passed or one.value < least:
                break
            count += 1
        return max(1, count)
