"""The ranks of a job side by side: their memory over the same steps, or over the same seconds; what is usual. Pure.

Clocks of different hosts are not compared. Ranks that count the same steps are shown over these steps, others over the
seconds since each first held memory. A rank is unusual if it differs from the others by more than ranks usually do.
"""

from collections import Counter
from collections.abc import Sequence
from enum import Enum, auto
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import msgspec

from tfmemtop.placement import Placement
from tfmemtop.state.comparable import ENOUGH_S, ENOUGH_STEPS, Measure
from tfmemtop.state.figures import RunFigures
from tfmemtop.state.model import State
from tfmemtop.units import MIB

SHARE = 0.05
LEAST = 16 * MIB
"""Up to this share of the usual figure, or up to so many bytes, a difference does not count."""
_SPREADS = 3
"""A difference counts only if the rank is so many times as far from the median as ranks usually are."""


class Usual(NamedTuple):
    """The usual ``value`` of a figure, and the ``spread``: how far ranks usually are from it."""

    value: float
    spread: float

    def excludes(self, value: float, least: float = LEAST) -> bool:
        """Return whether *value* is unusual. It is not if it differs by at most *least*."""
        return abs(value - self.value) > max(SHARE * self.value, least, _SPREADS * self.spread)


def usual_of(values: Sequence[float]) -> Usual:
    """Return what is usual of the *values* of all ranks."""
    middle = median(values)
    return Usual(middle, median(abs(value - middle) for value in values))


def usual_beside(mine: float, others: Sequence[float]) -> Usual:
    """Return what is usual for a rank that has *mine*: the median, or what the only other rank has."""
    middle = median([*others, mine]) if len(others) > 1 else others[0]
    return Usual(middle, median(abs(value - middle) for value in others) if len(others) > 2 else 0)


STRETCHES = 100
"""The most stretches into which a run is divided. Each is at least a step long, and its highest figure counts."""


class Along(Enum):
    """The common axis of the ranks."""

    STEPS = auto()
    SECONDS = auto()  # since memory was first held
    NOTHING = auto()


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's run. ``started`` is seconds since 1970 by its host's clock."""

    name: str  # the name of the recording
    placement: Placement | None
    host: str
    started: float
    tensorflow: str | None
    figures: RunFigures

    @property
    def number(self) -> int | None:
        """The number of the rank, where it is known."""
        return self.placement.rank if self.placement else None


def ranked(name: str, state: State, figures: RunFigures) -> Rank:
    """Return the newest run of *state* as a rank; *name* is that of its recording."""
    session = state.session
    placement = session.placement if session else None
    hooked = [process.hooked.hello.tensorflow for process in state.processes.values() if process.hooked]
    return Rank(
        name=name,
        placement=placement,
        host=placement.host if placement else session.host if session else "",
        started=(session.started if session else 0.0) + figures.past.started,
        tensorflow=next(iter(filter(None, hooked)), None),
        figures=figures,
    )


def of_one_job(one: Rank, other: Rank) -> bool:
    """Return whether the two are different ranks of one job."""
    place, others = one.placement, other.placement
    return place is not None and others is not None and place.job == others.job and place.rank != others.rank


class Laid(msgspec.Struct, frozen=True):
    """*ranks* side by side. Stretch *i* goes from ``marks[i]`` to ``marks[i + 1]``, in steps or in seconds.

    ``sizes`` has for each measure and rank the highest bytes in each stretch, ``None`` where the rank did not run or
    nothing is known. ``apart`` are the indices of the ranks that do not have the others' axis.
    """

    ranks: tuple[Rank, ...]
    along: Along
    unit: str = "steps"
    marks: tuple[float, ...] = ()
    sizes: tuple[tuple[tuple[int | None, ...], ...], ...] = ()
    apart: frozenset[int] = frozenset()

    def of(self, measure: Measure) -> tuple[tuple[int | None, ...], ...]:
        """Return ``sizes`` of *measure*, by rank."""
        return self.sizes[measure.value] if self.sizes else ((),) * len(self.ranks)


def lay(ranks: Sequence[Rank]) -> Laid:
    """Return *ranks* over the steps of the function that most of them call; over seconds if fewer than two call it."""
    return _over_steps(tuple(ranks)) or _over_seconds(tuple(ranks))


def _over_steps(ranks: tuple[Rank, ...]) -> Laid | None:
    functions = Counter(
        (course.function.name, course.function.steps) for rank in ranks if (course := rank.figures.past.course)
    )
    if not functions:
        return None
    usual = functions.most_common(1)[0][0]
    courses = {
        number: course
        for number, rank in enumerate(ranks)
        if (course := rank.figures.past.course) and (course.function.name, course.function.steps) == usual
    }
    begin = max(course.first.calls for course in courses.values())
    courses = {number: course for number, course in courses.items() if course.last.calls - begin >= ENOUGH_STEPS}
    if len(courses) < 2:
        return None
    last = max(course.last.calls for course in courses.values())
    marks = _marks(begin, last, min(STRETCHES, last - begin))
    spans: list[list[tuple[float, float] | None]] = []
    for number, rank in enumerate(ranks):
        course, started = courses.get(number), rank.figures.past.started
        spans.append(
            [
                (course.time_of(a) - started, course.time_of(b) - started)
                if course and b <= course.last.calls
                else None
                for a, b in pairwise(marks)
            ]
        )
    each = usual[1]
    return Laid(
        ranks,
        Along.STEPS,
        "calls" if each is None else "steps",
        tuple(mark * (each or 1) for mark in marks),
        _sizes(ranks, spans),
        frozenset(range(len(ranks))) - courses.keys(),
    )


def _over_seconds(ranks: tuple[Rank, ...]) -> Laid:
    lasted = {
        number: (begin, rank.figures.duration_s - begin)
        for number, rank in enumerate(ranks)
        if (begin := rank.figures.past.curve.begin) is not None
    }
    lasted = {number: span for number, span in lasted.items() if span[1] >= ENOUGH_S}
    apart = frozenset(range(len(ranks))) - lasted.keys()
    if len(lasted) < 2:
        return Laid(ranks, Along.NOTHING, apart=apart)
    longest = max(span for _, span in lasted.values())
    marks = _marks(0.0, longest, min(STRETCHES, int(longest / (ENOUGH_S / 10))))
    spans: list[list[tuple[float, float] | None]] = []
    for number in range(len(ranks)):
        begin, span = lasted.get(number, (0.0, 0.0))
        spans.append([(begin + a, begin + b) if b <= span else None for a, b in pairwise(marks)])
    return Laid(ranks, Along.SECONDS, "s", marks, _sizes(ranks, spans), apart)


def _marks(begin: float, end: float, count: int) -> tuple[float, ...]:
    return tuple(begin + (end - begin) * number / count for number in range(count + 1))


def _sizes(
    ranks: tuple[Rank, ...], spans: list[list[tuple[float, float] | None]]
) -> tuple[tuple[tuple[int | None, ...], ...], ...]:
    def of(rank: Rank, measure: Measure, mine: list[tuple[float, float] | None]) -> list[int | None]:
        curve, known = rank.figures.past.curve, measure.peak(rank.figures)
        return [None if span is None or known is None else curve.between(*span, measure.value) for span in mine]

    return tuple(
        tuple(tuple(of(rank, measure, mine)) for rank, mine in zip(ranks, spans, strict=True)) for measure in Measure
    )
