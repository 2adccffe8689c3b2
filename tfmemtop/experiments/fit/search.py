"""Chooses the limits to try: a bisection with few tries, because each try is a run of the script. Pure."""

from enum import Enum

import msgspec

from tfmemtop.ending import Ending
from tfmemtop.suggested import whole_mib, with_margin
from tfmemtop.units import MIB

CLOSE_SHARE, CLOSE_BYTES = 0.05, 64 * MIB
"""The search ends when a limit that works and one that fails differ by at most the larger of these two."""

_ABOVE = 1.04
"""For a prediction whose two ends are far apart: the smallest limit that really passes is usually at most this many
times the lower end (see ``help/whatif.md``)."""

_STRIDE = 1.3
"""The largest step up, as a factor, while every limit that is known to work is many times larger."""


class Result(Enum):
    """The result of a try."""

    REACHED = "reached"  # the try reached its goal
    FINISHED = "finished"  # the script ended with exit code 0 before the goal
    OUT_OF_MEMORY = "out_of_memory"
    ENDED = "ended"  # the script ended in another way
    INTERRUPTED = "interrupted"
    UNUSED = "unused"  # no use of memory by TensorFlow was observed
    UNLIMITED = "unlimited"  # TensorFlow used memory, but no pool had the limit of the try
    TOO_SLOW = "too_slow"


class TryOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a try, and the figures that belong to it.

    ``OUT_OF_MEMORY``: ``requested`` is the size of the failed request, in bytes. ``TOO_SLOW``: the try made ``steps``
    in ``seconds``. ``UNUSED``: ``kind`` is the kind of the devices whose memory was not used, ``GPU`` or ``CPU``.
    ``UNLIMITED``: ``limit`` is the pool's limit in bytes, which differs from that of the try. ``ENDED``: ``ending`` is
    how the run ended; ``complained``: TensorFlow had written before that a pool ran out.
    """

    result: Result
    requested: int | None = None
    steps: int = 0
    seconds: float = 0.0
    kind: str = ""
    limit: int | None = None
    ending: Ending | None = None
    complained: bool = False

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

    ``peak_in_use`` and ``pool`` are the highest values of the largest allocator, in bytes. ``speed`` is in
    ``speed_unit``, which is ``steps/s`` or ``allocations/s``. ``stalled_s`` is the time without any allocation, in
    seconds. The replay of its allocations predicts that every limit from ``surely`` bytes on passes, and none below
    ``at_least`` bytes. ``kept`` is the number of bytes that were in use between two steps. ``traced``: all its
    allocations were recorded, which makes a try slower.
    """

    limit: int | None
    how: TryOutcome
    duration_s: float
    peak_in_use: int | None = None
    pool: int | None = None
    speed: float | None = None
    speed_unit: str = ""
    stalled_s: float = 0.0
    surely: int | None = None
    at_least: int | None = None
    kept: int | None = None
    traced: bool = False

    @property
    def passed(self) -> bool:
        """Whether the limit worked."""
        return self.how.passed


class Search:
    """Chooses one try after another, until the smallest limit that works is known closely enough.

    *smallest* and *largest* bound the limits that are tried, *ceiling* is what the machine has; bytes.
    """

    def __init__(
        self, *, tries: int, smallest: int | None = None, largest: int | None = None, ceiling: int | None = None
    ) -> None:
        self._tries = tries
        self._smallest = smallest
        self._largest = largest
        self._ceiling = largest or ceiling
        self.tried: list[Tried] = []

    @property
    def limit(self) -> int | None:
        """The smallest limit that worked and is above every limit that failed; ``None`` while there is none."""
        failed = self._highest_failed()
        worked = [tried.limit for tried in self.tried if tried.passed and tried.limit is not None]
        return min((limit for limit in worked if limit > failed), default=None)

    @property
    def failed_below(self) -> int | None:
        """The largest limit below :attr:`limit` that was tried and did not work."""
        return self._highest_failed() or None

    @property
    def unproved(self) -> Tried | None:
        """The last try, if it proved nothing and so ended the search; otherwise ``None``."""
        return self.tried[-1] if self.tried and not self.tried[-1].how.proves else None

    @property
    def advice(self) -> int | None:
        """:attr:`limit` with a margin, in whole MiB."""
        limit = self.limit
        if limit is None:
            return None
        advice = with_margin(limit)
        return min(advice, self._ceiling // MIB * MIB) if self._ceiling else advice

    def tell(self, tried: Tried) -> None:
        """Store the result of the try that :meth:`next` chose."""
        self.tried.append(tried)

    def has_next(self) -> bool:
        """Return whether another try is worth it."""
        if not self.tried:
            return True
        if self.unproved is not None:
            return False
        if len(self.tried) >= self._tries or not self.tried[0].passed or self.tried[0].peak_in_use is None:
            return False
        return self._candidate() is not None

    @property
    def settled(self) -> bool:
        """Whether :attr:`limit` is known closely enough for the search to end."""
        return self.limit is not None and self.unproved is None and self._candidate() is None

    def next(self) -> int | None:
        """Return the limit to try now, in bytes, whole MiB; ``None`` for a try without a limit.

        Call it only after :meth:`has_next` has returned true.
        """
        return self._candidate() if self.tried else self._largest

    def _candidate(self) -> int | None:
        low, works = self._low(), self.limit
        upper = self._upper(low, works)
        if upper is None:
            # All limits that should have worked have failed: go up, as far as there is memory.
            upper = whole_mib(int(low * _STRIDE))
            upper = min(upper, self._ceiling // MIB * MIB) if self._ceiling else upper
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
        middle = (low + upper) // 2
        if upper > low * 2 * _STRIDE:
            middle = int(low * _STRIDE)
        return max(low + MIB, middle // MIB * MIB)

    def _first_guess(self, low: int) -> int:
        """Return the limit of the second try: the one that is predicted to be enough, or else the peak in use."""
        surely = self.tried[0].surely
        first = max(whole_mib(surely if surely is not None else self.tried[0].peak_in_use or 0), low + MIB)
        return min(first, self._ceiling // MIB * MIB) if self._ceiling else first

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
        known = [limit for limit in (*pools, works) if limit is not None and limit > low]
        if self._ceiling is not None:
            known = [min(limit, self._ceiling // MIB * MIB) for limit in known]
        return min((limit for limit in known if limit > low), default=None)
