"""The course of a step in as many slices as a graph has columns; each tells its highest moment, so no peak is lost."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import Moment

ORDER = (
    Kind.VARIABLES,
    Kind.OPTIMIZER,
    Kind.BEFORE,
    Kind.TENSORS,
    Kind.INPUT,
    Kind.ACTIVATIONS,
    Kind.GRADIENTS,
    Kind.LOSS,
    Kind.WORKSPACE,
    Kind.XLA,
    Kind.ROUNDING,
    Kind.UNKNOWN,
)
"""As the kinds are stacked, bottom up: what stays is below, what comes and goes above."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A stretch of a step, from its event ``first`` to ``last``, as it was at its highest moment, after ``event``.

    ``ends`` are bytes: the upper end of each kind of :data:`ORDER` in a stack.
    """

    first: int
    last: int
    event: int
    at_us: int
    total: int
    ends: tuple[int, ...]


def slices(moments: Sequence[Moment], count: int) -> tuple[Slice, ...]:
    """*moments* in *count* slices of equal time; a slice in which nothing happened is as the one before was left."""
    if not moments or count < 1:
        return ()
    times = [moment.at_us for moment in moments]
    begin, whole = times[0], max(1, times[-1] - times[0])
    found = []
    start = 0
    for number in range(count):
        stop = len(moments) if number == count - 1 else bisect_right(times, begin + whole * (number + 1) / count)
        # What stood as the slice began is seen in it too, unless that is already the peak of the slice before.
        highest = max(moments[start:stop] or moments[max(0, start - 1) : start], key=lambda moment: moment.total)
        ends = tuple(accumulate(highest.by_kind.get(kind, 0) for kind in ORDER))
        first = moments[start].event if start < stop else highest.event
        last = moments[stop - 1].event if stop else highest.event
        found.append(Slice(first, last, highest.event, highest.at_us, highest.total, ends))
        start = stop
    return tuple(found)
