"""Computes a trace as it would be with another value of a number in the command, such as the batch size. Pure.

Two runs with different values show how each allocation grows: the same allocation of the same operation has two sizes.
Its size with any other value is on the line through these two. So each allocation is found to grow with the value or
not. It does not matter if, with a small value, something else makes the peak, such as the optimizer's variables.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tfmemtop.experiments.whatif.course import Course

_NUMBER = re.compile(r"_\d+$")  # TensorFlow gives a function another number in each process

_MOST = 1 << 45
"""Bytes beyond which no allocation grows here."""


@dataclass(frozen=True, slots=True)
class Valued:
    """The trace of a run, and its value of the number."""

    value: int
    course: Course


def sizes(course: Course) -> Iterator[int]:
    """Return the requested bytes of all allocations of *course*, in their order."""
    return (size for who, size in course.events if not who & 1)


class Scaling:
    """Computes what *larger*, the run with the larger value, would have allocated with any other value."""

    def __init__(self, smaller: Valued, larger: Valued) -> None:
        assert smaller.value < larger.value
        self.base = larger
        self._apart = larger.value - smaller.value
        self._had = [*sizes(larger.course)]
        self._slopes = self._grown(smaller.course)

    def course(self, value: int) -> Course:
        """Return the trace with *value*."""
        more = value - self.base.value
        grown = zip(self._had, self._slopes, strict=True)
        asked = [min(_MOST, max(0, had + round(slope * more))) for had, slope in grown]
        following = iter(asked)
        course = self.base.course
        return replace(course, events=[(who, size if who & 1 else next(following)) for who, size in course.events])

    def _grown(self, smaller: Course) -> list[float]:
        """Return for each allocation the bytes that one more of the value adds."""
        before, mine = _by_operation(smaller), _by_operation(self.base.course)
        was = [*sizes(smaller)]
        anywhere = frozenset(was)
        slopes = [0.0] * len(self._had)
        for name, numbers in mine.items():
            partners = _partners(
                [self._had[number] for number in numbers], [was[other] for other in before.get(name, ())]
            )
            for number, partner in zip(numbers, partners, strict=True):
                had = self._had[number]
                # With a value of 0, no allocation can have a size below zero.
                most = had / self.base.value
                slope = max(0, had - partner) / self._apart
                if slope > most and had in anywhere:
                    slope = 0.0  # the partner is another allocation: other operations have this size in both runs
                slopes[number] = min(most, slope)
        return slopes


def _partners(had: Sequence[int], was: Sequence[int]) -> list[int]:
    """Return for each size that an operation *had* its partner among the sizes *was* of the run with the smaller value.

    Threads take turns in another order in each run. So equal sizes become partners first, and then sizes by their rank.
    A size that the smaller run has too, but fewer times, has not grown: an operation that updates a variable in place
    allocates only if another thread reads the variable just then.
    """
    rest = sorted((Counter(was) - Counter(had)).elements())
    known = frozenset(was)
    open_places = sorted((place for place, size in enumerate(had) if size not in known), key=lambda at: had[at])
    partners = [*had]
    # If the two runs have different numbers of sizes, the partner is the size with the same relative rank.
    for rank, place in enumerate(open_places if rest else ()):
        partners[place] = rest[rank * len(rest) // len(open_places)]
    return partners


def _by_operation(course: Course) -> dict[str, Sequence[int]]:
    """Return the numbers of the allocations of each operation."""
    found: dict[str, list[int]] = defaultdict(list)
    names = [_NUMBER.sub("", name) for name in course.names]
    for number, place in enumerate(course.operations):
        found[names[place] if 0 <= place < len(names) else ""].append(number)
    return {**found}
