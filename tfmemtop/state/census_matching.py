"""Finds the chunks of the variables and tensors that a census has counted. Pure.

The census tells how many there are in a pool, and the bytes of each. So of the chunks of that size that outlive a
window, as many are theirs. Which of the chunks it is can be mistaken; the sum cannot.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tfmemtop import events
from tfmemtop.events.allocations import FOREVER
from tfmemtop.events.device_names import is_cpu
from tfmemtop.state.holdings import TENSORS
from tfmemtop.state.model import Hooked
from tfmemtop.state.operation_names import Phase, named
from tfmemtop.state.step_course import WindowCourse


@dataclass(frozen=True, slots=True)
class Known:
    """``count`` variables or tensors of ``bytes`` each; ``kind`` is the census's word for them."""

    name: str
    kind: str
    shape: tuple[int, ...] | None
    dtype: str
    bytes: int
    count: int = 1


def known_variables(hooked: Hooked, device: str) -> list[Known]:
    """Return the variables on *device* of the newest census, then initial values that sessions may keep of them."""
    census = hooked.census
    if census is None:
        return []
    told = (one for one in (*census.largest, *census.others, *census.initial) if one.kind != TENSORS)
    return [_known(one) for one in told if _lies_in(one.device, device)]


def known_tensors(hooked: Hooked, device: str) -> list[Known]:
    """Return the tensors that Python holds on *device*, of the newest census that looked for them: each one once."""
    if hooked.look is None:
        return []
    groups = [
        Known(group.holder, TENSORS, tuple(group.shape), group.dtype, group.bytes // group.count, group.count)
        for group in hooked.look.alike
        if _lies_in(group.device, device) and group.shape is not None and group.count
    ]
    shapes = {(group.shape, group.dtype) for group in groups}
    single = [_known(one) for one in hooked.look.largest if _lies_in(one.device, device) and one.kind == TENSORS]
    return groups + [one for one in single if (one.shape, one.dtype) not in shapes]


def matched(course: WindowCourse, known: Iterable[Known], succeed: bool) -> Iterator[tuple[int, Known]]:
    """Yield pairs of a span's index and the one of *known* that the span holds.

    The span has the size of that one and outlives the window. *succeed* is for variables: one whose chunk was allocated
    within the window has a second pair, its predecessor, the chunk with the old value, which was freed in the window.
    """
    by_size: dict[int, list[Known]] = defaultdict(list)
    for one in known:
        if one.bytes:
            by_size[one.bytes] += [one] * one.count
    wanted = [holding.requested in by_size for holding in course.kinds]
    ranks = [_rank(course.name(holding)) if wanted[place] else _NEVER for place, holding in enumerate(course.kinds)]
    living: dict[int, list[int]] = defaultdict(list)
    leaving: dict[int, list[int]] = defaultdict(list)
    for place, (holding, end) in enumerate(zip(course.holdings, course.ends, strict=True)):
        if wanted[holding]:
            if end == FOREVER:
                living[course.kinds[holding].requested].append(place)
            elif course.begins[place] < 0 and ranks[holding] < _NEVER:
                leaving[course.kinds[holding].requested].append(place)
    for size, places in living.items():
        pairs: list[tuple[int, Known]] = []
        wanting = list(by_size[size])
        for tier in range(_TIERS if succeed else _TIERS + 1):
            of_tier = [place for place in places if _tier(course, ranks, place) == tier]
            found, wanting = _fitting(course, of_tier, wanting)
            pairs += found
        yield from pairs
        if succeed:
            yield from _predecessors(course, leaving[size], pairs)


def _tier(course: WindowCourse, ranks: list[int], place: int) -> int:
    """Return the tier of a span, the likeliest first.

    0: older than the window; 1: allocated to be a variable; 2: another result; 3: unlikely to be a variable.
    """
    rank = ranks[course.holdings[place]]
    if rank >= _NEVER:
        return _TIERS
    return 0 if course.begins[place] < 0 else rank


def _fitting(
    course: WindowCourse, places: list[int], wanting: list[Known]
) -> tuple[list[tuple[int, Known]], list[Known]]:
    """Pair *places* with *wanting*, by shape and type, or with places whose shape is not known; return the rest too."""
    exact: dict[tuple[tuple[int, ...] | None, str], list[int]] = defaultdict(list)
    nameless = []
    for place in reversed(places):
        kind = course.kinds[course.holdings[place]]
        if kind.shape is None or not kind.dtype:
            nameless.append(place)
        else:
            exact[tuple(kind.shape), kind.dtype].append(place)
    pairs, rest = [], []
    for one in wanting:
        alike = exact.get((one.shape, one.dtype)) or nameless
        if alike:
            pairs.append((alike.pop(), one))
        else:
            rest.append(one)
    return pairs, rest


def _predecessors(
    course: WindowCourse, leaving: list[int], pairs: list[tuple[int, Known]]
) -> Iterator[tuple[int, Known]]:
    """Yield the predecessors of *pairs*: each is the chunk that was freed soonest after its successor was allocated.

    The successor is a chunk of *pairs* with a new value of the variable. *leaving* are the chunks that were freed.
    """
    left = sorted(leaving, key=lambda place: course.ends[place])
    for place, one in sorted(pairs, key=lambda pair: -course.begins[pair[0]]):
        if (begin := course.begins[place]) >= 0:
            later = next((old for old in left if course.ends[old] > begin), None)
            if later is not None:
                left.remove(later)
                yield later, one


_NEVER, _TIERS = 3, 3


def _rank(operation: str) -> int:
    """Return how likely a chunk of *operation* is to be a variable: 1 most likely, then 2; ``_NEVER`` if unlikely."""
    one = named(operation)
    if not operation or one.phase is Phase.FUNCTION or not one.scopes or "Initializer" in one.scopes:
        return 1
    if one.base.startswith("Assign"):
        return 1
    return _NEVER if one.phase in (Phase.BACKWARD, Phase.INPUT) else 2


def _lies_in(device: str, pool: str) -> bool:
    """Return whether memory on *device* lies in the pool of *pool*: all logical CPUs of TensorFlow share one pool."""
    return device == pool or (is_cpu(device) and is_cpu(pool))


def _known(one: events.Variable) -> Known:
    return Known(one.name, one.kind, tuple(one.shape), one.dtype, one.bytes)
