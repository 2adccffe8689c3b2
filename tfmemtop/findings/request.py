"""A request for memory for which there was no room: who asked, what was there, how large those before were. Pure."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Set
from functools import lru_cache
from operator import le

import msgspec

from tfmemtop.events import Holders, Holding
from tfmemtop.findings.names import KERAS, named_spot, node_name, operation_name
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.scene import MANY
from tfmemtop.state.anatomy import Anatomy, waited
from tfmemtop.state.attribution import made_at
from tfmemtop.state.holders import Part
from tfmemtop.state.inventory import Group, Inventory
from tfmemtop.state.model import Hooked
from tfmemtop.state.operation_names import Phase, named
from tfmemtop.state.windows import REMEMBERED, WindowCourse, recorded, unpacked
from tfmemtop.tensorflow_text import XLA_RAN_OUT
from tfmemtop.units import MIB

_RANDOM, _OF_RANDOM = "Stateless", ("Mul", "Add", "AddV2", "Sub")
"""The operations that make random numbers for a variable's first value, and those by which they get its range."""

_VECTORIZED = "/pfor/"
_VECTORIZING = re.compile(r"(?:\b[\w.]+\.)?(?:batch_jacobian|jacobian|vectorized_map)(?=\()")


class Request(msgspec.Struct, frozen=True):
    """A request for which there was no room, in a pool with that ``stock``; ``asked`` is ``None`` if not known.

    ``phase`` is the script's phase, such as ``evaluate``; empty if none is known.
    """

    anatomy: Anatomy
    stock: Inventory
    hooked: Hooked
    t: float
    phase: str = ""

    @property
    def asked(self) -> int | None:
        return self.anatomy.asked

    @property
    def began(self) -> float:
        """When the script began to wait for room. Once it has failed, what the same step had made is freed."""
        waiting = waited(self.hooked, self.t)
        return min(self.t, waiting.t) if waiting else self.t

    @property
    def who(self) -> str:
        """The operation and the line that asked: ``ConcatV2 at train.py:9``."""
        name, line = asked_by(self.anatomy)
        return at_line(name or "TensorFlow", line)


def asked_by(a: Anatomy) -> tuple[str, str | None]:
    """Return the operation and the line that asked, those in a graph where they are known."""
    if is_vectorized(a):
        return vectorized_name(a), a.line
    if a.node:
        return node_name(a.node), a.node_line or a.line
    return operation_name(a.operation), a.line


def compiled_name(a: Anatomy) -> str:
    """Return what of XLA made the request: a compiled ``step`` of Keras, a function, or part of one; or empty."""
    if XLA_RAN_OUT not in a.message or not (a.operation or "").startswith("__"):
        return ""
    function = operation_name(a.operation)
    return "step" if function == KERAS else f"part of {function}" if a.node else function


def at_line(name: str, line: str | None) -> str:
    """Return a *name* with the line of the script that belongs to it."""
    return name + (f" at {named_spot(line)}" if line else "")


def is_vectorized(a: Anatomy) -> bool:
    """Return whether a Jacobian, or a map that TensorFlow vectorizes, made the request."""
    return _VECTORIZED in (a.node or a.operation or "")


def vectorized_name(a: Anatomy) -> str:
    """Return what computes the rows of a vectorized request: ``tape.jacobian``, if the script's line has one call."""
    calls = {found[0] for found in _VECTORIZING.finditer(a.code)}
    return calls.pop() if len(calls) == 1 else "a Jacobian or a vectorized map"


_UPDATES = "AssignSub", "AssignAdd", "ResourceApply"
"""The beginnings of operations that change a variable, which has a value."""


def makes_variable(stock: Inventory, a: Anatomy) -> Remedy | None:
    """Return what helps if a request is for the first value of a variable, before any step; else ``None``.

    There is no slot of an optimizer, and the code says so, or random numbers or variables of that shape are there. If a
    tape is open, or it asks for random numbers, all that has that shape are random numbers, and what is computed of
    them: else they may be those of a layer, such as Dropout.
    """
    updates = named(a.node or a.operation or "").base.startswith(_UPDATES)
    if stock.look is None or stock.groups.get(Group.OPTIMIZER, 0) >= MIB or updates:
        return None
    shape = tuple(a.shape or ())
    made = {named(part.operation).base for part in stock.parts if part.shape == shape and not part.python_name}
    asks = operation_name(a.operation).startswith(_RANDOM) and "random" not in a.code
    only = all(name.startswith(_RANDOM) or name in _OF_RANDOM for name in made)
    sure = not stock.look.tapes and not asks
    if "tf.Variable(" in a.code and sure:
        return Action.SMALLER_VARIABLE
    if shape and (asks or any(name.startswith(_RANDOM) for name in made)):
        return Action.SMALLER_VARIABLE if sure or only else None
    return Action.SMALLER_MODEL if sure and shape and shape in stock.shapes else None


_US = 1e6
_ROUNDS, _SIZES = 3, 2
"""The least number of times that each size was asked for, and of sizes, where only an operation's name is known."""


class PastRequest(msgspec.Struct, frozen=True):
    """The largest request of the same kind before: its ``shape``, and its ``bytes``."""

    shape: tuple[int, ...]
    bytes: int


def largest_before(
    hooked: Hooked,
    device: str,
    operation: str | None,
    shape: list[int] | None,
    before: float,
    variables: Set[tuple[int, ...]] = frozenset(),
    line: str | None = None,
    node: str | None = None,
) -> PastRequest | None:
    """Return the largest earlier request like one for *shape* by *operation*, made by *before*.

    It is one by the same *node* of a graph, if one was recorded, or by the same operation, if that is known by its
    name; else one for a tensor of as many dimensions, most of which are equal, or which the same *line* of the script
    asked for. What has the shape of one of the *variables* is left out: its size is not that of a batch; so is what may
    be of the same batch. ``None`` if neither a layer's name nor a shape is known, or if there was room for an even
    larger one, or for as much by the same node, which has been freed since: else it may be of the same step.
    """
    name = operation if operation and not operation.startswith("__") else None
    if shape is None and (name is None or "/" not in name):
        return _in_rounds(hooked, device, name, before) if name else None
    found: list[tuple[bool, bool, PastRequest]] = []
    for window in recorded(hooked.windows.get(device)):
        course = unpacked(window)
        # Run eagerly, all layers ask by one name, and without a gradient nothing tells where a step ends.
        eager = name is not None and "/" not in name
        one_name = eager and all(named(one).phase is not Phase.BACKWARD for one in course.names)
        for kind, _, freed in _made_by(before, window, course):
            known = list(kind.shape or ())
            if tuple(known) in variables or not (name is None or _same(course.name(kind), name, whole=shape is None)):
                continue
            same = node is not None and named(course.name(kind)) == named(node)
            if shape is not None and (
                (same and known == shape and freed)
                # What is still in use may be of another layer, and of the same batch.
                or (_extends(shape, known) and (freed or known[0] != shape[0]))
            ):
                return None
            wider = shape is not None and name is None and _is_of_another_width(known, shape)
            layer = (
                shape
                and one_name
                and known[:1] == shape[:1]
                and _rises(window)[course.name(kind), kind.requested] < MANY
            )
            if (wider or layer) and not same:
                continue
            at_line = name is not None and _is_at(line, hooked, course.name(kind))
            if shape is None or (
                (((same or at_line) and _smaller(known, shape)) or _extends(known, shape))
                and _is_of_another_batch(known, shape)
            ):
                of_bytes = known == [kind.requested]  # scratch memory, which is no tensor of the script's
                found.append((same, not wider, PastRequest(() if of_bytes else tuple(known), kind.requested)))
    return max(found, key=lambda one: (*one[:2], one[2].bytes), default=(False, False, None))[2]


def largest_of_tracings(hooked: Hooked, device: str, function: str, before: float) -> PastRequest | None:
    """Return the largest request that XLA made by *before* for other tracings of *function*: ``__inference_step_9``.

    ``None`` if this tracing itself made the largest: that may be of the same call.
    """
    found, graph = list[tuple[int, str]](), function.rpartition("_")[0]
    for window in recorded(hooked.windows.get(device)):
        course = unpacked(window)
        made = ((kind, course.name(kind)) for kind, *_ in _made_by(before, window, course) if kind.shape is None)
        found += [(kind.requested, name) for kind, name in made if name.rpartition("_")[0] == graph]
    size, by = max(found, default=(0, function))
    return None if by == function else PastRequest((), size)


def smaller_batch(
    hooked: Hooked, device: str, part: Part, before: float, variables: Set[tuple[int, ...]]
) -> PastRequest | None:
    """Return the largest that the operation of *part* made by *before* in a smaller batch, all else being alike.

    What has the shape of one of the *variables* is left out: it may have made the first value of that. So is what has
    not been freed: a batch before has. ``None`` also if as large a batch has been freed since.
    """
    shape, found = part.shape or (), PastRequest((), 0)
    for window in recorded(hooked.windows.get(device)):
        course = unpacked(window)
        for kind, _, freed in _made_by(before, window, course):
            known = tuple(kind.shape or ())
            if known[1:] != shape[1:] or not known or named(course.name(kind)).base != named(part.operation).base:
                continue
            if known[0] >= shape[0] and freed:
                return None
            if known[0] < shape[0] and freed and known not in variables and kind.requested > found.bytes:
                found = PastRequest(known, kind.requested)
    return found if found.shape else None


def _in_rounds(hooked: Hooked, device: str, name: str, before: float) -> PastRequest | None:
    """Return the largest earlier request by the operation *name*, if it asked again and again for each of its sizes.

    The operations of all layers have one name where they are run eagerly. So one that asked once for a size may be of
    another layer, and of the same batch.
    """
    sizes = Counter[int]()
    for window in recorded(hooked.windows.get(device)):
        course, made = unpacked(window), Counter[int]()
        for kind, count, _ in _made_by(before, window, course):
            if course.name(kind) == name and kind.shape != [kind.requested]:  # scratch memory has such a shape
                made[kind.requested] += count
        sizes |= made  # the most in one window: they overlap
    if len(sizes) < _SIZES or min(sizes.values()) < _ROUNDS:
        return None
    return PastRequest((), max(sizes))


def repeats(request: Request) -> bool:
    """Return whether as much was asked for before, by the same operation if it is known, and has been freed."""
    operation = request.anatomy.operation
    for window in recorded(request.hooked.windows.get(request.stock.device)):
        course = unpacked(window)
        for kind, _, freed in _made_by(request.began, window, course):
            if freed and kind.requested == request.asked and operation in (None, course.name(kind)):
                return True
    return False


def _made_by(before: float, window: Holders, course: WindowCourse) -> list[tuple[Holding, int, bool]]:
    """Return the kinds of allocations of a *window* that were made by then, how often, and whether one was freed."""
    events = bisect_right(course.times, (before - window.began) * _US)
    spans = [
        (place, 0 <= end < events)
        for place, begin, end in zip(course.holdings, course.begins, course.ends, strict=True)
        if begin < events
    ]
    past, freed = Counter(place for place, _ in spans), {place for place, ended in spans if ended}
    return [(course.kinds[place], past[place], place in freed) for place in sorted(past)]


@lru_cache(REMEMBERED)
def _rises(window: Holders) -> Counter[tuple[str, int]]:
    """Return how often each operation asked for as many bytes just after it asked for fewer: once a step, or once."""
    course = unpacked(window)
    kinds = [(course.name(kind), kind.requested) for kind in course.kinds]
    found, newest = Counter[tuple[str, int]](), dict[str, int]()
    for name, asked in (kinds[place] for place in course.holdings):
        if newest.get(name, asked) < asked:
            found[name, asked] += 1
        newest[name] = asked
    return found


def _same(one: str, other: str, *, whole: bool) -> bool:
    """Return whether two names are of the same operation: of the same layer too, if the *whole* names are compared."""
    return named(one) == named(other) if whole else named(one).base == named(other).base


def _extends(small: list[int], large: list[int]) -> bool:
    """Return whether *large* is like *small*, with some dimensions larger: at least half of them are equal.

    If only the last dimension differs, that is the width of a layer, and these are two layers.
    """
    if len(small) != len(large) or small[:-1] == large[:-1]:
        return False
    pairs = list(zip(small, large, strict=True))
    return sum(old == new for old, new in pairs) * 2 >= len(pairs) and all(new >= old for old, new in pairs)


def _smaller(small: list[int], large: list[int] | None) -> bool:
    return large is not None and len(small) == len(large) and all(map(le, small, large))


def _is_at(line: str | None, hooked: Hooked, operation: str) -> bool:
    made = made_at(hooked, operation)
    return made is not None and line == f"{made.file}:{made.line}"


def _is_of_another_width(known: list[int], shape: list[int]) -> bool:
    """Return whether only the second of four dimensions differs: on a GPU, that may be the channels of pictures."""
    return len(known) == len(shape) == 4 and known[0] == shape[0] and known[2:] == shape[2:]


def _is_of_another_batch(known: list[int], shape: list[int]) -> bool:
    """Return whether no new size of *shape* is in *known*: what has one, or is a column, belongs to the same batch."""
    column = known[-1] == 1 and known[:-1] == shape[:-1]
    return not column and set(known).isdisjoint(new for old, new in zip(known, shape, strict=True) if new > old)
