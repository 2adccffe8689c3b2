"""The tries of a search, and the limits to try: a bisection with few tries, since each is a run of the script. Pure."""

from abc import ABC, abstractmethod
from enum import Enum
from typing import NamedTuple

import msgspec

from tfmemtop.limits import whole_mib, with_margin
from tfmemtop.units import MIB


class Trial(NamedTuple):
    """What is tried: the allocator's ``limit`` in bytes (``None``: none), and the ``value`` of a number, if sought."""

    limit: int | None
    value: int | None = None


class Result(Enum):
    """The result of a try."""

    REACHED = "reached"  # the try reached its goal
    FINISHED = "finished"  # the script ended with exit code 0 before the goal
    OUT_OF_MEMORY = "out_of_memory"
    ENDED = "ended"  # the script ended in another way
    UNUSED = "unused"  # no use of memory by TensorFlow was observed
    UNLIMITED = "unlimited"  # TensorFlow used memory, but no pool had the limit of the try
    TOO_SLOW = "too_slow"


class TryOutcome(NamedTuple):
    """The result of a try, and the same in words. If the try proves nothing, ``remedy`` is a sentence on what helps."""

    result: Result
    text: str = ""
    remedy: str = ""

    @property
    def passed(self) -> bool:
        """Whether the limit worked."""
        return self.result in (Result.REACHED, Result.FINISHED)

    @property
    def proves(self) -> bool:
        """Whether the try proves anything about the limit. For that, a pool must have had the limit."""
        return self.result not in (Result.UNUSED, Result.UNLIMITED)


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A try under *limit* bytes (``None``: without a limit), and its result; unknown figures are ``None``.

    ``value`` is the value of the number that is sought, if one is. ``pool_limit`` is the largest limit, in bytes, that
    TensorFlow's allocators reported. ``peak_in_use`` and ``pool`` are the highest values of the largest allocator, in
    bytes. ``steps_per_s`` counts the steps of the busiest ``tf.function``. The replay of the try's allocations predicts
    that every limit from ``surely`` bytes on passes, and none below ``at_least`` bytes.
    """

    limit: int | None
    value: int | None = None
    how: TryOutcome
    duration_s: float
    pool_limit: int | None = None
    peak_in_use: int | None = None
    pool: int | None = None
    steps_per_s: float | None = None
    surely: int | None = None
    at_least: int | None = None

    @property
    def passed(self) -> bool:
        """Whether the limit worked."""
        return self.how.passed


CLOSE_SHARE, CLOSE_BYTES = 0.05, 64 * MIB
"""The search ends when a limit that works and one that fails differ by at most the larger of these two."""

_ABOVE = 1.04
"""For a prediction whose two ends are far apart: the smallest limit that really passes is usually at most this many
times the lower end (see ``help/whatif.md``)."""

_STRIDE = 1.3
"""The largest step up, as a factor, while every limit that is known to work is many times larger."""


class Search(ABC):
    """Chooses one try after another, at most *tries*, until what is sought is known closely enough."""

    def __init__(self, tries: int) -> None:
        self._tries = tries
        self.tried: list[Tried] = []

    @property
    @abstractmethod
    def found(self) -> int | None:
        """The limit or value that was found; ``None`` while there is none."""

    @property
    @abstractmethod
    def settled(self) -> bool:
        """Whether what is sought is known closely enough for the search to end."""

    @property
    @abstractmethod
    def model(self) -> Tried | None:
        """A try that ran without want of memory. It shows how long a later try may take; ``None`` if there is none."""

    @abstractmethod
    def next(self) -> Trial | None:
        """Return what to try now; ``None`` if another try is not worth it, or not allowed."""

    @abstractmethod
    def figures(self) -> dict[str, object]:
        """Return what was found by keys and values, in bytes."""

    def tell(self, tried: Tried) -> None:
        """Store the result of the try that :meth:`next` chose."""
        self.tried.append(tried)

    @property
    def unproved(self) -> Tried | None:
        """The last try, if it proved nothing and so ended the search; otherwise ``None``."""
        return self.tried[-1] if self.tried and not self.tried[-1].how.proves else None


class LimitSearch(Search):
    """The search for the smallest limit that works.

    *smallest* and *largest* bound the limits that are tried, *ceiling* is what the machine has; bytes. A limit to try
    is in whole MiB.
    """

    def __init__(
        self, *, tries: int, smallest: int | None = None, largest: int | None = None, ceiling: int | None = None
    ) -> None:
        super().__init__(tries)
        self._smallest = smallest
        self._largest = largest
        self._ceiling = largest or ceiling

    @property
    def found(self) -> int | None:
        """The smallest limit that worked and is above every limit that failed; ``None`` while there is none."""
        failed = self._highest_failed()
        worked = [tried.limit for tried in self.tried if tried.passed and tried.limit is not None]
        return min((limit for limit in worked if limit > failed), default=None)

    @property
    def failed_below(self) -> int | None:
        """The largest limit below :attr:`found` that was tried and did not work."""
        return self._highest_failed() or None

    @property
    def advice(self) -> int | None:
        """:attr:`found` with a margin, in whole MiB."""
        return None if self.found is None else self._up_to_ceiling(with_margin(self.found))

    @property
    def settled(self) -> bool:
        return self.found is not None and self.unproved is None and self._candidate() is None

    @property
    def model(self) -> Tried | None:
        return self.tried[0] if self.tried else None

    def next(self) -> Trial | None:
        if not self.tried:
            return Trial(self._largest)
        first = self.tried[0]
        if self.unproved or len(self.tried) >= self._tries or not first.passed or first.peak_in_use is None:
            return None
        candidate = self._candidate()
        return None if candidate is None else Trial(candidate)

    def figures(self) -> dict[str, object]:
        return {"limit": self.found, "failed_below": self.failed_below, "advice": self.advice}

    def _candidate(self) -> int | None:
        low, works = self._low(), self.found
        upper = self._upper(low, works)
        if upper is None:
            # All limits that should have worked have failed: go up, as far as there is memory.
            upper = self._up_to_ceiling(whole_mib(int(low * _STRIDE)))
            return upper if upper > low else None
        if len(self.tried) == self._tries - 1 and works is None:
            return upper  # the last try: otherwise there may be no limit to recommend
        first = self._first_guess(low)
        untried = works is None or first < works // MIB * MIB
        if len(self.tried) == 1 and untried and (first < upper or self.tried[0].surely):
            return first  # `surely` may be more than the pool was, because another order of threads needs more
        close = max(upper * CLOSE_SHARE, CLOSE_BYTES)
        if works is not None and (below := self._predicted_to_fail()) is not None and low < below < upper:
            # If the two ends are only a little too far apart, a try in the middle shows more than one at the lower end.
            return (below + upper) // 2 // MIB * MIB if close < upper - below <= 2 * close else below
        if upper - low <= close:
            # A limit of the pool's size is usually enough. It is worth a try, unless it is hardly less than `works`.
            spares = works is None or works > upper * (1 + CLOSE_SHARE) or works - low > close
            return upper if spares and upper != works else None
        if works is not None and (above := self._predicted_to_do()) is not None and low < above < upper:
            return above
        middle = int(low * _STRIDE) if upper > low * 2 * _STRIDE else (low + upper) // 2
        return max(low + MIB, middle // MIB * MIB)

    def _up_to_ceiling(self, limit: int) -> int:
        return min(limit, self._ceiling // MIB * MIB) if self._ceiling else limit

    def _first_guess(self, low: int) -> int:
        """Return the limit of the second try: the one that is predicted to be enough, or else the peak in use."""
        surely = self.tried[0].surely
        guess = whole_mib(surely if surely is not None else self.tried[0].peak_in_use or 0)
        return self._up_to_ceiling(max(guess, low + MIB))

    def _predicted_to_fail(self) -> int | None:
        """Return the largest limit under which the run is predicted to fail, in bytes, whole MiB."""
        at_least = self.tried[0].at_least
        return None if at_least is None else whole_mib(at_least) - MIB

    def _predicted_to_do(self) -> int | None:
        """Return the limit that is usually enough, in bytes, whole MiB.

        ``None`` unless the largest limit that is predicted to fail has been tried and is the highest that failed.
        """
        at_least = self.tried[0].at_least
        if at_least is None or self._highest_failed() != self._predicted_to_fail():
            return None
        return whole_mib(int(at_least * _ABOVE))

    def _highest_failed(self) -> int:
        failed = [tried for tried in self.tried if not tried.passed and tried.how.proves]
        return max((tried.limit for tried in failed if tried.limit is not None), default=0)

    def _low(self) -> int:
        """Return a limit that does not work, or must not be tried."""
        # BFC's chunks are less than twice as large as requested, so no limit below half of the peak can work.
        low = (self.tried[0].peak_in_use or 0) // 2 // MIB * MIB
        if self._smallest is not None:
            low = max(low, whole_mib(self._smallest) - MIB)
        return max(low, self._highest_failed())

    def _upper(self, low: int, works: int | None) -> int | None:
        """Return the smallest limit that works or should: a pool needs no larger limit than the size it reached."""
        # If a pool's size is not known, twice its peak is taken: regions double, so hardly any pool is larger.
        pools = [whole_mib(tried.pool or 2 * (tried.peak_in_use or 0)) for tried in self.tried if tried.passed]
        known = [self._up_to_ceiling(limit) for limit in (*pools, works) if limit is not None and limit > low]
        return min((limit for limit in known if limit > low), default=None)
