"""Chooses the values of a number in the command to try, to find the largest with which the command works. Pure."""

import re
from collections.abc import Iterable, Sequence
from math import log2
from typing import NamedTuple

import msgspec

from tfmemtop.experiments.fit.search import Tried

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


VALUES_MOST = 2**40

CLOSE = 50
"""The search ends when a value that works and one that fails differ by at most a 50th, or by 1."""

_BACK = 12
"""If a predicted value failed, the next try is a 12th below it: fragmentation and rounding take a few percent."""

_BACK_FAR = 5
"""If it was predicted by replays of runs with far smaller values, the next try is a 5th below it. In such runs, the
memory that does not depend on the value has a large share."""

_LESS = 3
"""Percent. If a value failed that was surely expected to pass, the next one is this much below."""

_NEAR = 4
"""If the remaining range is at most this many times as wide as the range at which the search ends, a prediction is no
better than the values that have passed."""

_FAR = 8  # a prediction is far away if it is more than this many times the largest value that passed

_WRONG = 1.5
"""A prediction is refuted if it is more than this many times a value that has failed."""

_ABOVE = 1.02
"""The smallest limit that really passes, as a multiple of the lower end of the predicted range."""

_BEFORE = 0.85
"""After a single try that passed, the next value is this share of the expected one: two passes show more than one."""

_APART = 1.1
"""But the next value is at least this many times the one that passed, unless that exceeds the expected value."""

_SECOND = 2
"""The second value is at most this many times the first, plus one. The one is added because at an exact double, a size
that has doubled could equal another size of the first try, and the two would be confused."""

_TWO = 1.7
"""A credit, in tries, that is enough for two small steps upward."""

_PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")
_RANGE = re.compile(r"([A-Za-z_]\w*)=(\d{1,13})\.\.(\d{1,13})")


class Wanted(msgspec.Struct, frozen=True):
    """What is searched: the largest value of ``name``, from ``lowest`` to ``highest``.

    The command contains ``{name}`` in the place of the value.
    """

    name: str
    lowest: int
    highest: int

    def placed(self, command: list[str], value: int) -> list[str]:
        """Return *command* with *value* in place of ``{name}``."""
        return [word.replace(f"{{{self.name}}}", str(value)) for word in command]

    def is_in(self, command: Sequence[str]) -> bool:
        """Return whether *command* contains ``{name}``."""
        return any(f"{{{self.name}}}" in word for word in command)


def places(command: Sequence[str]) -> list[str]:
    """Return the names in braces in *command*, such as ``batch`` in ``--batch-size={batch}``."""
    return list(dict.fromkeys(name for word in command for name in _PLACE.findall(word)))


def parse_wanted(text: str) -> Wanted | None:
    """Parse a text such as ``batch=1..4096``; ``None`` if it has another form, or its bounds make no range."""
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        return None
    wanted = Wanted(found[1], int(found[2]), int(found[3]))
    return wanted if 1 <= wanted.lowest < wanted.highest <= VALUES_MOST else None


class TriedValue(msgspec.Struct, frozen=True):
    """The result of a try with ``value``, under the allocator's ``limit`` in bytes (``None`` if not known)."""

    value: int
    tried: Tried
    limit: int | None


class PeakLine(msgspec.Struct, frozen=True):
    """The peak in use as a line through two tries: ``fixed`` bytes, plus ``each`` bytes times the value."""

    fixed: float
    each: float

    def largest(self, limit: int) -> int:
        """Return the largest value that fits into *limit* bytes by this line."""
        return int((limit - self.fixed) / self.each)


def _line(points: Sequence[tuple[int, float]]) -> PeakLine | None:
    """Return the line through two points (value, bytes needed); ``None`` if it does not rise."""
    (value, need), (larger, more) = points
    each = (more - need) / (larger - value)
    return PeakLine(more - each * larger, each) if each > 0 else None


class Prediction(NamedTuple):
    """What replays with other values predict.

    All values up to ``surely`` should pass. ``likely`` is probably the largest value that passes. Values above
    ``at_most`` should fail. ``values`` are those of the two tries that were replayed.
    """

    surely: int
    likely: int
    at_most: int
    values: tuple[int, int]


class LargestSearch:
    """Chooses one try after another, until the largest value that works is known closely enough."""

    def __init__(self, wanted: Wanted, tries: int) -> None:
        self.wanted = wanted
        self._tries = tries
        self.tried: list[TriedValue] = []
        self.prediction: Prediction | None = None
        """The newest prediction, by the replays of the tries so far."""
        self.first_prediction: Prediction | None = None
        """The first prediction, by the replays of the first two tries that passed and could be used."""
        self.trouble = ""
        """The reason why the replays with other values failed; empty if they did not."""

    @property
    def works(self) -> int | None:
        """The largest value that worked and is below every value that failed; ``None`` if there is none."""
        fails = self.fails or VALUES_MOST + 1
        return max((one.value for one in self.tried if one.tried.passed and one.value < fails), default=None)

    @property
    def fails(self) -> int | None:
        """The smallest value that did not work; ``None`` if there is none."""
        return min((one.value for one in self.tried if not one.tried.passed and one.tried.how.proves), default=None)

    @property
    def unproved(self) -> TriedValue | None:
        """The last try, if it proved nothing and so ended the search; otherwise ``None``."""
        return self.tried[-1] if self.tried and not self.tried[-1].tried.how.proves else None

    @property
    def limit(self) -> int | None:
        """The allocator's limit in these tries, in bytes."""
        return next((one.limit for one in reversed(self.tried) if one.limit is not None), None)

    @property
    def growth(self) -> PeakLine | None:
        """How the peak grows with the value, by the two largest values that worked; ``None`` if it does not grow.

        ``None`` also if fewer than two such values are known.
        """
        known = {one.value: one.tried.peak_in_use for one in self.tried if one.tried.passed}
        points = sorted((value, peak) for value, peak in known.items() if peak is not None)[-2:]
        return _line(points) if len(points) == 2 else None

    @property
    def told_growth(self) -> PeakLine | None:
        """The growth that is shown to the user: by the largest value that worked, and the next of at most half of it.

        Near the limit a peak means little: an allocation that only just fits gets a smaller chunk.
        """
        peaks = {one.value: one.tried.peak_in_use for one in self.tried if one.tried.passed}
        known = {value: peak for value, peak in peaks.items() if peak is not None}
        top = max(known, default=0)
        low = max((value for value in known if 2 * value <= top), default=None)
        return self.growth if low is None else _line([(low, known[low]), (top, known[top])])

    @property
    def predicted(self) -> int | None:
        """The largest value by the replays, or else by the line of the needed memory; ``None`` if neither is known."""
        if self.prediction is not None:
            return self.prediction.likely
        growth, limit = self._needed, self.limit
        return growth.largest(limit) if growth is not None and limit is not None else None

    @property
    def _needed(self) -> PeakLine | None:
        """How the smallest limit that passes grows with the value; :attr:`growth` if it is not known for all tries."""
        told = {one.value: one.tried.at_least for one in self.tried if one.tried.passed}
        points = sorted((value, least * _ABOVE) for value, least in told.items() if least is not None)[-2:]
        return _line(points) if len(points) == 2 and None not in told.values() else self.growth

    def _from_one(self) -> int | None:
        """Return the value to try after a single value that passed, by the memory that this try kept between steps.

        ``None`` if more or fewer values passed, or if that memory is not known.
        """
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
        """Store the result of the try that :meth:`next` chose."""
        self.tried.append(tried)

    def expect(self, prediction: Prediction) -> None:
        """Store what the replays of the tries up to now predict."""
        self.prediction = prediction
        self.first_prediction = self.first_prediction or prediction

    @property
    def settled(self) -> bool:
        """Whether the largest value is known as closely as :data:`CLOSE` demands."""
        return bool(self.tried) and self.unproved is None and self._candidate() is None

    def next(self) -> int | None:
        """Return the value to try now; ``None`` if another try is not worth it, or not allowed."""
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
            # A try just above the prediction shows most, because it should fail.
            close = max(1, low // CLOSE)
            candidate = low + close if likely <= low + close else likely + max(1, likely // CLOSE)
        return within(candidate, low, high, fails=fails is not None, credit=credit)

    def _as_predicted(self, prediction: Prediction, low: int, high: int) -> int | None:
        """Return a value between what surely passes and what is likely; ``None`` if a try contradicts the prediction.

        Close to a value that passed, it is only so much larger that the search can end with it.
        """
        close = max(1, low // CLOSE)
        top, sure = min(high, prediction.likely), max(low, prediction.surely)
        if low + close < sure < high <= low + _NEAR * close:
            return sure
        if high - low <= _NEAR * close or top <= low + close * 3 // 2:
            return low + close
        if self.tried[-1].tried.passed:
            if top == high:
                # A value failed that was likely to pass. What surely passes is still believed: try it, then the value
                # next to it. If that passes as well, try the middle.
                if sure > low + close:
                    return sure
                return low + close if low <= prediction.surely + close else (low + top) // 2
            # The first prediction comes from far smaller values. Later ones are better.
            first = prediction is self.first_prediction
            return max(low + close, (sure + top) // 2 if first else (sure + 3 * top) // 4)
        less = sure - max(1, sure * _LESS // 100) if prediction is self.first_prediction else sure
        return less if low < less < sure + 1 <= high else None

    def _beside_the_prediction(self, low: int, high: int) -> int | None:
        """Return the prediction; if it has been tried, a value beside it, farther away each time.

        ``None`` without a prediction, or if it is of no use.
        """
        if (predicted := self.predicted) is None:
            return None
        if low < predicted < high:
            # Too close to a value that failed or passed, a try would show little.
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
        """Return what a single value that passed lets expect, but at least a fifth below the smallest that failed."""
        expected = self._from_one()
        return expected if expected is None or self.fails is None else min(expected, high - high // _BACK_FAR)

    def _more(self, low: int) -> int:
        """Return a value above *low*, the largest that passed, while no value is known to fail."""
        alone = len(self.tried) == 1 and self.tried[0].tried.at_least is not None
        return int(low * _SECOND) + 1 if alone else low * 2

    def _first(self) -> int:
        """Return the power of two in the middle of the range on a logarithmic scale."""
        wanted = self.wanted
        middle = 1 << (wanted.lowest.bit_length() + wanted.highest.bit_length()) // 2 - 1
        return min(max(middle, wanted.lowest), wanted.highest)

    def _alike(self, least: int = 0) -> int:
        """Return how many tries in a row, up to the last one, had the same result as the last; at least 1.

        The count stops at a value below *least*.
        """
        count = 0
        for one in reversed(self.tried):
            if one.tried.passed != self.tried[-1].tried.passed or one.value < least:
                break
            count += 1
        return max(1, count)
