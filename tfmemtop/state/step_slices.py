"""The course of a step in as many slices as a graph has columns. Each shows its highest moment, so no peak is lost."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import msgspec

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
"""The order of the kinds in a stack, from the bottom: kinds that stay are below, kinds that change are above."""


class StepSlice(msgspec.Struct, frozen=True):
    """A stretch of a step, from its event ``first`` to ``last``.

    The highest of its moments is after ``event``, ``at_us`` µs into the window, with ``total`` bytes in use. The last
    of its moments is ``last_us`` µs into the window. ``ends`` are bytes: the upper end of each kind of :data:`ORDER` in
    a stack, when most was in use in the stretch. If more was in use at its start than at any of its moments, that is at
    its start.
    """

    first: int
    last: int
    event: int
    at_us: int
    last_us: int
    total: int
    ends: tuple[int, ...]


def slices(moments: Sequence[Moment], count: int) -> tuple[StepSlice, ...]:
    """Divide *moments* into *count* slices of equal time.

    A slice without an event shows the last moment before it.
    """
    if not moments or count < 1:
        return ()
    times = [moment.at_us for moment in moments]
    begin, whole = times[0], max(1, times[-1] - times[0])
    found = []
    start = 0
    for number in range(count):
        stop = len(moments) if number == count - 1 else bisect_right(times, begin + whole * (number + 1) / count)
        # What is in use after the last moment before the slice is in use at its start.
        known = moments[max(0, start - 1) : stop]
        highest = max(moments[start:stop] or known, key=lambda moment: moment.total)
        most = max(known, key=lambda moment: moment.total)
        ends = tuple(accumulate(most.by_kind.get(kind, 0) for kind in ORDER))
        first = moments[start].event if start < stop else highest.event
        last = moments[stop - 1].event if stop else highest.event
        found.append(StepSlice(first, last, highest.event, highest.at_us, known[-1].at_us, highest.total, ends))
        start = stop
    return tuple(found)
