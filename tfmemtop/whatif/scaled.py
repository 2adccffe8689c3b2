"""Computes a trace as it would be with another value of a number in the command, such as the batch size. Pure.

Two runs with different values show how each allocation grows: the same allocation of the same operation has two sizes.
Its size with any other value is on the line through these two. So each allocation is found to grow with the value or
not. It does not matter if, with a small value, something else makes the peak, such as the optimizer's variables.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tfmemtop.whatif.course import Course

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
        slopes = [0.0] * len(self._had)
        for name, numbers in mine.items():
            partners = _partners(
                [self._had[number] for number in numbers], [was[other] for other in before.get(name, ())]
            )
            for number, partner in zip(numbers, partners, strict=True):
                # With a value of 0, no allocation can have a size below zero.
                most = self._had[number] / self.base.value
                slopes[number] = min(most, max(0, self._had[number] - partner) / self._apart)
        return slopes


def _partners(had: Sequence[int], was: Sequence[int]) -> list[int]:
    """Return for each size that an operation *had* its partner among the sizes *was* of the run with the smaller value.

    Threads take turns in another order in each run. So equal sizes become partners first, and then sizes by their rank.
    """
    left = Counter(was)
    partners: list[int | None] = []
    for size in had:
        partners.append(size if left[size] else None)
        left[size] -= bool(left[size])
    rest = sorted(left.elements())
    open_places = sorted((place for place, partner in enumerate(partners) if partner is None), key=lambda at: had[at])
    # If the two runs have different numbers of sizes, the partner is the size with the same relative rank.
    for rank, place in enumerate(open_places):
        partners[place] = rest[rank * len(rest) // len(open_places)] if rest else had[place]
    return [size if partner is None else partner for size, partner in zip(had, partners, strict=True)]


def _by_operation(course: Course) -> dict[str, Sequence[int]]:
    """Return the numbers of the allocations of each operation."""
    found: dict[str, list[int]] = defaultdict(list)
    names = [_NUMBER.sub("", name) for name in course.names]
    for number, place in enumerate(course.operations):
        found[names[place] if 0 <= place < len(names) else ""].append(number)
    return {**found}
