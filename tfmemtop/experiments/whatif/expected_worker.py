"""Replays what runs with other values of a number would allocate.

This is run as a module, in a separate process; ``worker_protocol.py`` describes its input and output.
:meth:`~tfmemtop.experiments.whatif.expected.Expectations.request` makes the question. The answer is
:class:`~tfmemtop.experiments.whatif.expected.Expected` as JSON.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from tfmemtop.events import Trace
from tfmemtop.experiments.whatif.course import Course, course_of
from tfmemtop.experiments.whatif.expected import Expected, Question
from tfmemtop.experiments.whatif.waiting import runs_of
from tfmemtop.experiments.whatif.worker_protocol import serve
from tfmemtop.probe import replaying
from tfmemtop.probe.build import REPLAY, build
from tfmemtop.probe.replaying import NotReplayed, ReplayAnswer, Replayer
from tfmemtop.units import MIB

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


_MORE_SHARE, _MORE_LEAST = 0.02, 3 * MIB
"""Real runs have passed under limits that were this much below the replay's lower end, see ``settings.py``."""


def answer(asked: Question, parts: Sequence[Trace]) -> Expected | None:
    """Return the values that are expected from the two traces in *parts*; ``None`` if the replay cannot be built.

    Raises:
        ValueError: *parts* are not all parts of two traces, or one of them is damaged.
    """
    built = build(Path(asked.tensorflow), asked.version, REPLAY)
    if built.state != "built":
        return None
    (first, second), traces = asked.values, (parts[: asked.parts], parts[asked.parts :])
    smaller, larger = (Valued(value, course_of(trace)) for value, trace in zip((first, second), traces, strict=True))
    scaling = Scaling(smaller, larger)
    runs = runs_of(larger.course)

    def fits(value: int, limit: int, *, surely: bool) -> bool:
        course = scaling.course(value)
        question = replaying.Question(asked.growth, asked.collects, limit, alone=not surely)
        try:
            with Replayer(Path(built.path), course.events, course.steps, course.scratch, runs) as replayer:
                (found,) = replayer.ask([question])
        except NotReplayed:
            return False  # for example, the sizes are beyond all bounds
        return isinstance(found, ReplayAnswer) and (found.in_order if surely else found.waiting).fits

    room = asked.limit + max(_MORE_LEAST, int(asked.limit * _MORE_SHARE))
    bounds = asked.lowest, asked.highest
    surely = largest(lambda value: fits(value, asked.limit, surely=True), second, *bounds)
    likely = max(surely, largest(lambda value: fits(value, asked.limit, surely=False), surely, *bounds))
    at_most = max(likely, largest(lambda value: fits(value, room, surely=False), likely, *bounds))
    return Expected(surely, likely, at_most, asked.values)


def largest(fits: Callable[[int], bool], near: int, lowest: int, highest: int) -> int:
    """Return the largest value that *fits*, exact to half a percent, or ``lowest - 1`` if none does.

    The search begins at *near* with growing steps, and then halves the range.
    """
    good, bad = lowest - 1, highest + 1
    value = min(max(near, lowest), highest)
    step = max(1, value // 8)
    while True:
        if fits(value):
            good = value
        else:
            bad = value
        if lowest <= good and bad <= highest:
            break
        following = min(value + step, highest) if good == value else max(value - step, lowest)
        if following == value:
            return good
        value, step = following, step * 2
    while bad - good > max(1, good // 200):
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def main(_: list[str]) -> int:
    """Answer the question on stdin. Return the exit status: 0, or 1 if the question cannot be decoded."""
    return serve(Question, lambda asked, parts: msgspec.json.encode(answer(asked, parts)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
