"""The holders of a pool's memory in use at a moment of a window: rows that add up to the byte. Pure."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import msgspec
from msgspec.structs import asdict

from tfmemtop.events import Holders, Holding, XlaCluster
from tfmemtop.events.allocations import FOREVER
from tfmemtop.state.attribution import Attribution, Owner, attribution
from tfmemtop.state.attribution import Kind as Kind
from tfmemtop.state.model import Hooked
from tfmemtop.state.operation_names import named
from tfmemtop.state.windows import times_us, unpacked


class By(Enum):
    """The property by which rows are grouped."""

    LAYER = "layer"
    OPERATION = "op"
    KIND = "kind"
    SHAPE = "shape"
    LINE = "line"


class Part(Owner, frozen=True, kw_only=True):
    """``count`` allocations that are alike: ``bytes`` of chunks in all, of which ``requested`` were requested."""

    bytes: int
    requested: int
    count: int


class Holder(msgspec.Struct, frozen=True, dict=True):
    """A row. ``kind`` is that of most of its bytes, of two with equally many that which is first in :data:`ORDER`.

    ``name`` is empty where only the kind is known. ``share`` is that of all memory in use, 0 to 1.
    """

    name: str
    kind: Kind
    bytes: int
    count: int
    parts: tuple[Part, ...]  # the largest first
    share: float

    @cached_property
    def kinds(self) -> list[tuple[Kind, int]]:
        """All of its kinds with their bytes, the largest first, of equal ones that first in :data:`ORDER`.

        What is of no part is of the row's kind.
        """
        sizes = Counter({self.kind: self.bytes - sum(part.bytes for part in self.parts)})
        for part in self.parts:
            sizes[part.kind] += part.bytes
        return sorted(sizes.items(), key=lambda one: (-one[1], ORDER.index(one[0])))

    @cached_property
    def mix(self) -> list[tuple[Kind, float]]:
        """The same kinds in the order of a stack, each with its upper end as a share of the row; the last end is 1."""
        stacked = sorted(self.kinds, key=lambda one: ORDER.index(one[0]))
        ends = accumulate(size for _, size in stacked)
        return [(kind, end / max(1, self.bytes)) for (kind, _), end in zip(stacked, ends, strict=True)]


class Standing(msgspec.Struct, frozen=True):
    """What is in use after event ``at``: ``total`` bytes, which are those of the ``holders`` and the ``unknown`` ones.

    ``nameless`` has those of the unknown bytes for which TensorFlow gave no name. The others were allocated in events
    that are lost.
    """

    at: int
    total: int
    holders: tuple[Holder, ...]  # the largest first
    unknown: int
    nameless: tuple[Part, ...]

    @property
    def rows(self) -> tuple[Holder, ...]:
        """The holders, and last a row for the unknown bytes, if there are any."""
        if not self.unknown:
            return self.holders
        count = sum(part.count for part in self.nameless)
        share = self.unknown / max(1, self.total)
        return *self.holders, Holder("", Kind.UNKNOWN, self.unknown, count, self.nameless, share)

    @property
    def before(self) -> int:
        """Bytes of memory without a name that is older than all recorded allocations."""
        return sum(part.bytes for row in self.holders for part in row.parts if part.kind is Kind.BEFORE)


class Moment(NamedTuple):
    """The memory in use after ``event``, ``at_us`` µs into the window: ``total`` bytes, and the bytes of each kind."""

    event: int
    at_us: int
    by_kind: dict[Kind, int]
    total: int


def standing(window: Holders, hooked: Hooked, by: By, at: int | None = None) -> Standing:
    """Return the holders after event *at* of *window*, by default at its peak.

    The rows' bytes and ``unknown`` add up to ``total``. At the peak that is the figure of TensorFlow's allocator.
    """
    owners, event = attribution(window, hooked), window.peak_at if at is None else at
    return owners.once(("standing", by, event), lambda: _standing(window, owners, by, event))


def _standing(window: Holders, owners: Attribution, by: By, at: int) -> Standing:
    course = unpacked(window)
    of, holdings = owners.of, course.holdings
    alive: dict[tuple[int, int], list[int]] = {}  # places, by owner and holding
    for place in course.alive(at):
        alive.setdefault((id(of[place]), holdings[place]), []).append(place)
    sized = ((of[places[0]], course.kinds[kind], len(places)) for (_, kind), places in alive.items())
    parts = _parts(owners, sized)
    nameless = tuple(part for part in parts if part.kind is Kind.UNKNOWN)
    rows: dict[str, list[Part]] = {}
    for part in parts:
        if part.kind is not Kind.UNKNOWN:
            rows.setdefault(row_key(part, by), []).append(part)
    unknown = course.nobodys + sum(part.bytes for part in nameless)
    total = course.nobodys + sum(part.bytes for part in parts)
    holders = [_holder(name, of_row, total) for name, of_row in rows.items()]
    holders.sort(key=lambda row: (-row.bytes, row.name))
    return Standing(at, total, tuple(holders), unknown, nameless)


def course(window: Holders, hooked: Hooked) -> list[Moment]:
    """Return what is in use, by kind, before the first event (``event`` -1) and after each event."""
    course, owners = unpacked(window), attribution(window, hooked)
    parts = [list(owners.kinds_of(place)) for place in range(len(course.begins))]
    ending: dict[int, list[int]] = {}
    for place, end in enumerate(course.ends):
        if end != FOREVER:
            ending.setdefault(end, []).append(place)
    times = times_us(window)
    now: dict[Kind, int] = {Kind.UNKNOWN: course.nobodys} if course.nobodys else {}
    moments, total, next_place = [], course.nobodys, 0
    for event in range(-1, course.events):
        while next_place < len(parts) and course.begins[next_place] == event:
            for kind, size in parts[next_place]:
                now[kind] = now.get(kind, 0) + size
                total += size
            next_place += 1
        for place in ending.get(event, ()):
            for kind, size in parts[place]:
                now[kind] -= size
                total -= size
        at_us = times[min(event, len(times) - 1)] if event >= 0 and times else 0
        moments.append(Moment(event, at_us, now.copy(), total))
    return moments


def _parts(owners: Attribution, alive: Iterable[tuple[Owner, Holding, int]]) -> list[Part]:
    sums: dict[tuple[Owner, int], list[int]] = {}
    for owner, kind, count in alive:
        for opened, size, requested, times in owners.opened(owner, kind, count):
            # Where no shape is recorded, only its size tells one result of an operation from another.
            row = sums.setdefault((opened, requested // times), [0, 0, 0])
            row[0] += size
            row[1] += requested
            row[2] += times
    parts = [
        Part(**asdict(owner), bytes=size, requested=requested, count=count)
        for (owner, _), (size, requested, count) in sums.items()
    ]
    return sorted(parts, key=lambda part: (-part.bytes, part.operation))


def contents(cluster: XlaCluster, window: Holders, hooked: Hooked) -> list[Part]:
    """Return the values in the buffer of *cluster* at its peak, the largest first; *window* has the names of layers."""
    buffer = Holding(None, None, "", "", cluster.temporary, cluster.temporary, 0)
    owner = Owner(Kind.XLA, "", "", None, "", "", cluster=cluster.module)
    return _parts(attribution(window, hooked), [(owner, buffer, 1)])


def _holder(name: str, parts: Sequence[Part], total: int) -> Holder:
    kinds: Counter[Kind] = Counter()
    for part in parts:
        kinds[part.kind] += part.bytes
    named, count, size = "" if name.startswith("\0") else name, sum(part.count for part in parts), kinds.total()
    most = max(sorted(kinds, key=ORDER.index), key=lambda kind: kinds[kind])
    return Holder(named, most, size, count, tuple(parts), size / max(1, total))


def row_key(part: Owner, by: By) -> str:
    """Return the name of the row for *part*, or a zero character and the kind where it has no name."""
    nameless = f"\0{part.kind.value}"
    if by is By.KIND:
        return nameless
    if by is By.SHAPE:
        shape = "" if part.shape is None else f"[{','.join(map(str, part.shape))}]"
        return f"{part.dtype}{shape}" or nameless
    if by is By.LINE:
        return f"{part.line.file}:{part.line.line}" if part.line else nameless
    if by is By.OPERATION:
        return part.python_name or part.operation or nameless
    if part.kind is Kind.TENSORS and part.python_name and (not part.layer or ".<locals>." not in part.python_name):
        return part.python_name  # a local variable holds a layer's result only while the call runs
    if part.layer:
        return part.layer
    if part.kind in (Kind.ACTIVATIONS, Kind.GRADIENTS, Kind.TENSORS, Kind.WORKSPACE) and part.operation:
        return named(part.operation).forward
    return nameless


# The course of a step in as many slices as a graph has columns. Each shows its highest moment, so no peak is lost.

ORDER = (
    Kind.VARIABLES,
    Kind.OPTIMIZER,
    Kind.BEFORE,
    Kind.TENSORS,
    Kind.RESULTS,
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
