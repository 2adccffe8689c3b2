"""Which limit to try next: a bisection in few tries, each of which costs a run of the script. Pure."""

from enum import Enum

import msgspec

from tfmemtop.ending import Ending
from tfmemtop.suggested import whole_mib, with_margin
from tfmemtop.units import MIB

CLOSE_SHARE, CLOSE_BYTES = 0.05, 64 * MIB
"""The search ends when a limit that works is this near to one that does not, whichever of the two is more."""

_ABOVE = 1.04
"""Where the two ends of what is predicted are far apart: the smallest limit that really passes is, as a rule, no more
than so many times the lower end (see ``help/whatif.md``)."""

_STRIDE = 1.3
"""The most a step up may be, as long as a limit is only known to work that is many times larger."""


class Result(Enum):
    """How a try went."""

    REACHED = "reached"  # it got as far as was asked for
    FINISHED = "finished"  # it ended with exit code 0 before that
    OUT_OF_MEMORY = "out_of_memory"
    ENDED = "ended"  # it ended in another way
    INTERRUPTED = "interrupted"
    UNUSED = "unused"  # TensorFlow was not seen to use memory
    UNLIMITED = "unlimited"  # it did, but no pool was seen with the limit of the try
    TOO_SLOW = "too_slow"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a try went, with the figures that belong to the result.

    ``requested`` bytes were lacking, where the try ran out of memory. ``steps`` in ``seconds`` were made, where it was
    too slow. ``kind`` is that of the devices, ``GPU`` or ``CPU``, whose memory was not used. ``limit`` is that of the
    pool, in bytes, where it was not that of the try. ``ending`` is how it ended; ``complained`` if TensorFlow had
    written by then that a pool ran out.
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
        """Whether it says something of the limit, which must have had a pool to act on."""
        return self.result not in (Result.UNUSED, Result.UNLIMITED)


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A try under *limit* bytes (``None``: without one) and how it went; unknown figures are ``None``.

    ``peak_in_use`` and ``pool`` are the highest of the largest allocator, in bytes; ``speed`` is in
    ``speed_unit``, ``steps/s`` or ``allocations/s``; ``stalled_s`` seconds without any allocation. ``surely`` and
    ``at_least`` are the smallest limits that the replay of its allocations predicts, in bytes; ``kept`` is what was in
    use between two steps. ``traced`` if all its allocations were recorded, which makes it slower.
    """

    limit: int | None
    how: Outcome
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
    """Asks for one try after another, until the smallest limit that works is known closely enough.

    *smallest* and *largest* bound what is tried, *ceiling* is what the machine has; bytes.
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
        """The smallest limit that has worked with none above it failing; ``None`` while there is none."""
        failed = self._highest_failed()
        worked = [tried.limit for tried in self.tried if tried.passed and tried.limit is not None]
        return min((limit for limit in worked if limit > failed), default=None)

    @property
    def failed_below(self) -> int | None:
        """The largest limit below :attr:`limit` that was tried and did not work."""
        return self._highest_failed() or None

    @property
    def unproved(self) -> Tried | None:
        """The try that proved nothing, with which the search ended; ``None`` if there was none."""
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
        """Take in how the try went that :meth:`next` asked for."""
        self.tried.append(tried)

    def has_next(self) -> bool:
        """Whether another try is worth it."""
        if not self.tried:
            return True
        if self.unproved is not None:
            return False
        if len(self.tried) >= self._tries or not self.tried[0].passed or self.tried[0].peak_in_use is None:
            return False
        return self._candidate() is not None

    @property
    def settled(self) -> bool:
        """Whether :attr:`limit` is known as closely as is asked for."""
        return self.limit is not None and self.unproved is None and self._candidate() is None

    def next(self) -> int | None:
        """The limit to try now, in whole MiB; ``None`` for a try without one. Only after :meth:`has_next`."""
        return self._candidate() if self.tried else self._largest

    def _candidate(self) -> int | None:
        low, works = self._low(), self.limit
        upper = self._upper(low, works)
        if upper is None:
            # All that was thought to work has failed: upwards, as far as there is memory.
            upper = whole_mib(int(low * _STRIDE))
            upper = min(upper, self._ceiling // MIB * MIB) if self._ceiling else upper
            return upper if upper > low else None
        if len(self.tried) == self._tries - 1 and works is None:
            return upper  # the last chance to have anything to recommend
        first = self._first_guess(low)
        untried = works is None or first < works // MIB * MIB
        if len(self.tried) == 1 and untried and (first < upper or self.tried[0].surely):
            return first  # surely enough may be more than the pool was: another order of threads needs more
        close = max(upper * CLOSE_SHARE, CLOSE_BYTES)
        if works is not None and (below := self._predicted_to_fail()) is not None and low < below < upper:
            # If the two ends are a little too far apart, what lies in the middle tells more than the lower one.
            return (below + upper) // 2 // MIB * MIB if close < upper - below <= 2 * close else below
        if upper - low <= close:
            # As large as the pool was is enough as a rule: worth a try, unless it would be hardly less.
            spares = works is None or works > upper * (1 + CLOSE_SHARE) or works - low > close
            return upper if spares and upper != works else None
        if works is not None and (above := self._predicted_to_do()) is not None and low < above < upper:
            return above
        middle = (low + upper) // 2
        if upper > low * 2 * _STRIDE:
            middle = int(low * _STRIDE)
        return max(low + MIB, middle // MIB * MIB)

    def _first_guess(self, low: int) -> int:
        """The limit to try after the first: what is predicted to be surely enough, or else the peak in use."""
        surely = self.tried[0].surely
        first = max(whole_mib(surely if surely is not None else self.tried[0].peak_in_use or 0), low + MIB)
        return min(first, self._ceiling // MIB * MIB) if self._ceiling else first

    def _predicted_to_fail(self) -> int | None:
        """The largest limit under which the run is predicted to fail, whole MiB."""
        at_least = self.tried[0].at_least
        return None if at_least is None else whole_mib(at_least) - MIB

    def _predicted_to_do(self) -> int | None:
        """The limit that usually does, where the largest that is predicted to fail did, whole MiB."""
        at_least = self.tried[0].at_least
        if at_least is None or self._highest_failed() != self._predicted_to_fail():
            return None
        return whole_mib(int(at_least * _ABOVE))

    def _highest_failed(self) -> int:
        failed = [tried for tried in self.tried if not tried.passed and tried.how.proves]
        return max((tried.limit for tried in failed if tried.limit is not None), default=0)

    def _low(self) -> int:
        """A limit that does not work, or is not to be tried."""
        # BFC hands out chunks of less than twice what was asked for: below half of the peak nothing can work.
        low = (self.tried[0].peak_in_use or 0) // 2 // MIB * MIB
        if self._smallest is not None:
            low = max(low, whole_mib(self._smallest) - MIB)
        return max(low, self._highest_failed())

    def _upper(self, low: int, works: int | None) -> int | None:
        """The smallest limit that works, or should: a pool that grew no larger had no need of a larger limit."""
        # Where pools are not known: their regions double, so that hardly one is twice as large as its peak.
        pools = [whole_mib(tried.pool or 2 * (tried.peak_in_use or 0)) for tried in self.tried if tried.passed]
        known = [limit for limit in (*pools, works) if limit is not None and limit > low]
        if self._ceiling is not None:
            known = [min(limit, self._ceiling // MIB * MIB) for limit in known]
        return min((limit for limit in known if limit > low), default=None)
