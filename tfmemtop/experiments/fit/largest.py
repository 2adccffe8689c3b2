"""Chooses the values of a number in the command to try, to find the largest with which the command works. Pure."""

import re
from collections.abc import Sequence
from itertools import takewhile
from math import sqrt

import msgspec

from tfmemtop.experiments.fit.search import Search, Trial, Tried

VALUES_MOST = 2**40

CLOSE = 50
"""The search ends when a value that works and one that fails differ by at most a 50th, or by 1."""

_BACK = 12
"""If a predicted value failed, the next try is a 12th below it: fragmentation and rounding take a few percent."""

_ABOVE = 1.02
"""The smallest limit that really passes, as a multiple of the lower end of the predicted range."""

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


class MemoryLine(msgspec.Struct, frozen=True):
    """Memory as a line through two tries: ``fixed`` bytes, plus ``each`` bytes times the value."""

    fixed: float
    each: float

    def largest(self, limit: int) -> int:
        """Return the largest value that fits into *limit* bytes by this line."""
        return int((limit - self.fixed) / self.each)


def _line(low: tuple[int, float], top: tuple[int, float]) -> MemoryLine | None:
    """Return the line through two points (value, bytes); ``None`` if it does not rise."""
    each = (top[1] - low[1]) / (top[0] - low[0])
    return MemoryLine(top[1] - each * top[0], each) if each > 0 else None


class LargestSearch(Search):
    """The search for the largest value that works under *limit* bytes (``None``: under that of the device).

    Two values that passed show how the needed memory grows, and so which value just fits. That value is tried. While
    tries go against the prediction, the search moves away from it in steps that double, and at most to the middle
    between a value that passed and one that failed.
    """

    def __init__(self, wanted: Wanted, tries: int, limit: int | None) -> None:
        super().__init__(tries)
        self.wanted = wanted
        self._given = limit

    @property
    def found(self) -> int | None:
        """The largest value that worked and is below every value that failed; ``None`` if there is none."""
        fails = self.fails or VALUES_MOST + 1
        return max((value for value, _ in self._passed() if value < fails), default=None)

    @property
    def fails(self) -> int | None:
        """The smallest value that did not work; ``None`` if there is none."""
        failed = [tried for tried in self.tried if not tried.passed and tried.how.proves]
        return min((tried.value for tried in failed if tried.value is not None), default=None)

    @property
    def limit(self) -> int | None:
        """The allocator's limit in these tries, in bytes."""
        return self._given or next((one.pool_limit for one in reversed(self.tried) if one.pool_limit), None)

    @property
    def settled(self) -> bool:
        return bool(self.tried) and self.unproved is None and self._candidate() is None

    @property
    def model(self) -> Tried | None:
        return None  # a larger value may take longer

    @property
    def growth(self) -> MemoryLine | None:
        """How the peak grows with the value; ``None`` if that is not known, or if it does not grow.

        It is the line through the largest value that worked, and the next of at most half of it. Near the limit a peak
        means little: an allocation that only just fits gets a smaller chunk.
        """
        peaks = {value: tried.peak_in_use for value, tried in self._passed() if tried.peak_in_use is not None}
        top = max(peaks, default=0)
        others = [value for value in peaks if value != top]
        low = max((value for value in others if 2 * value <= top), default=max(others, default=None))
        return None if low is None else _line((low, peaks[low]), (top, peaks[top]))

    def next(self) -> Trial | None:
        if len(self.tried) >= self._tries or self.unproved:
            return None
        value = self._candidate()
        return None if value is None else Trial(self._given, value)

    def figures(self) -> dict[str, object]:
        growth = self.growth
        return {
            "name": self.wanted.name,
            "value": self.found,
            "failed_above": self.fails,
            "limit": self.limit,
            "fixed_bytes": round(growth.fixed) if growth else None,
            "bytes_each": round(growth.each) if growth else None,
        }

    def _candidate(self) -> int | None:
        wanted, works, fails = self.wanted, self.found, self.fails
        if not self.tried:
            # The power of two in the middle of the range on a logarithmic scale.
            middle = 1 << (wanted.lowest.bit_length() + wanted.highest.bit_length()) // 2 - 1
            return min(max(middle, wanted.lowest), wanted.highest)
        low = wanted.lowest - 1 if works is None else works
        high = wanted.highest + 1 if fails is None else fails
        if high - low <= (1 if works is None or fails is None else max(1, works // CLOSE)):
            return None
        value = high // 4 if works is None else self._beyond(low, fails)
        return min(max(value, low + 1), high - 1)

    def _beyond(self, low: int, fails: int | None) -> int:
        """Return a value above *low*, the largest that passed, and below *fails*, the smallest that failed, if any."""
        close, predicted = max(1, low // CLOSE), self._predicted()
        # At an exact double, a size that has doubled could equal another size of the first try.
        middle = low * 2 + 1 if fails is None else round(sqrt(low * fails))
        if predicted is None:
            return middle
        if predicted <= low:
            further = low + (close << self._in_a_row(predicted))
            return further if fails is None else min(middle, further)
        if fails is not None and predicted > fails - close:
            return max(middle, fails - (max(1, fails // _BACK) << self._in_a_row(0)))
        return max(predicted, low + close)

    def _predicted(self) -> int | None:
        """Return the largest value that fits by the memory that two values needed; ``None`` if that is not known.

        A replay shows best what a try needed. Without it, its peak does.
        """
        passed = self._passed()[-2:]
        needs = [tried.at_least * _ABOVE for _, tried in passed if tried.at_least is not None]
        if len(needs) < len(passed):
            needs = [tried.peak_in_use for _, tried in passed if tried.peak_in_use is not None]
        if len(needs) < 2 or self.limit is None:
            return None
        line = _line(*zip((value for value, _ in passed), needs, strict=True))
        return None if line is None else line.largest(self.limit)

    def _in_a_row(self, least: int) -> int:
        """Return how many tries before the last one had the same result as it, at values of *least* and more."""
        last = self.tried[-1].passed
        alike = takewhile(lambda one: one.passed is last and (one.value or 0) >= least, reversed(self.tried))
        return max(0, len(list(alike)) - 1)

    def _passed(self) -> list[tuple[int, Tried]]:
        """Return the values that passed, each with its try, the smallest first."""
        passed = [(one.value, one) for one in self.tried if one.passed and one.value is not None]
        return sorted(passed, key=lambda pair: pair[0])
