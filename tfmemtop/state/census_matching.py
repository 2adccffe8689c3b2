"""Which chunks are the variables and tensors of a census: by requested bytes, as far as there are of both. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tfmemtop import events
from tfmemtop.events.courses import FOREVER
from tfmemtop.state.holdings import TENSORS
from tfmemtop.state.model import Hooked
from tfmemtop.state.operation_names import Phase, named
from tfmemtop.state.step_course import Course


@dataclass(frozen=True, slots=True)
class Known:
    """``count`` variables or tensors of ``bytes`` each; ``kind`` is the census's word."""

    name: str
    kind: str
    shape: tuple[int, ...] | None
    dtype: str
    bytes: int
    count: int = 1


def known_variables(hooked: Hooked, device: str) -> list[Known]:
    """The variables on *device*, by the newest census."""
    census = hooked.census
    if census is None:
        return []
    told = (one for one in (*census.largest, *census.others) if one.kind != TENSORS)
    return [_known(one) for one in told if one.device == device]


def known_tensors(hooked: Hooked, device: str) -> list[Known]:
    """The tensors that Python holds on *device*, by the newest look for them: each one once."""
    if hooked.look is None:
        return []
    groups = [
        Known(group.holder, TENSORS, tuple(group.shape), group.dtype, group.bytes // group.count, group.count)
        for group in hooked.look.alike
        if group.device == device and group.shape is not None and group.count
    ]
    shapes = {(group.shape, group.dtype) for group in groups}
    single = [_known(one) for one in hooked.look.largest if one.device == device and one.kind == TENSORS]
    return groups + [one for one in single if (one.shape, one.dtype) not in shapes]


def matched(course: Course, known: Iterable[Known], succeed: bool) -> Iterator[tuple[int, Known]]:
    """Pairs of a span's place and what it is: those of *known* that have a span of their size that lives on.

    With *succeed*, one that was allocated within the window has a predecessor too, that was freed in it.
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
        free = sorted(places, key=lambda place: (course.begins[place] >= 0, ranks[course.holdings[place]], place))
        free = [place for place in free if ranks[course.holdings[place]] < _NEVER or not succeed]
        exact: dict[tuple[tuple[int, ...] | None, str], list[int]] = defaultdict(list)
        for place in reversed(free):
            of_place = course.kinds[course.holdings[place]]
            if of_place.shape is not None and of_place.dtype:
                exact[tuple(of_place.shape), of_place.dtype].append(place)
        taken: set[int] = set()
        pairs, later = [], []
        for one in by_size[size]:
            alike = exact.get((one.shape, one.dtype))
            if alike:
                place = alike.pop()
                taken.add(place)
                pairs.append((place, one))
            else:
                later.append(one)
        nameless = [
            place for place in free if place not in taken and course.kinds[course.holdings[place]].shape is None
        ]
        pairs += zip(nameless, later, strict=False)
        yield from pairs
        if succeed:
            yield from _predecessors(course, leaving[size], pairs)


def _predecessors(course: Course, leaving: list[int], pairs: list[tuple[int, Known]]) -> Iterator[tuple[int, Known]]:
    """What was freed soonest after a chunk had been allocated in its place, with a new value of the variable."""
    left = sorted(leaving, key=lambda place: course.ends[place])
    for place, one in sorted(pairs, key=lambda pair: -course.begins[pair[0]]):
        if (begin := course.begins[place]) >= 0:
            later = next((old for old in left if course.ends[old] > begin), None)
            if later is not None:
                left.remove(later)
                yield later, one


_NEVER = 3


def _rank(operation: str) -> int:
    """How likely it is that a chunk is a variable's, the likeliest first."""
    if not operation:
        return 0
    one = named(operation)
    if one.phase is Phase.FUNCTION or not one.scopes or "Initializer" in one.scopes:
        return 0
    if one.phase is Phase.OPTIMIZER or one.base.startswith("Assign"):
        return 1
    return _NEVER if one.phase in (Phase.BACKWARD, Phase.INPUT) else 2


def _known(one: events.Variable) -> Known:
    return Known(one.name, one.kind, tuple(one.shape), one.dtype, one.bytes)
