"""One try of a search: what is tried, and what came of it."""

from enum import Enum
from typing import NamedTuple

import msgspec


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
