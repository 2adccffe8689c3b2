"""Finds chunks without a name that are likely the input of a step: batches, and data sets. Pure.

Memory that is in use as a whole step begins is no result of that step, and TensorFlow gives no name for it. But what a
layer has read follows from its shapes: if its kernel is *k* × *n* and its result is *rows* × *n*, it has read
*rows* × *k*. If nothing of that size was made earlier in the step, what it has read is older than the step. Then chunks
of exactly these bytes are its input, unless something else of that size lasts from step to step: a variable, a result
that is kept, or a constant.

A data set is a pair of chunks: one with a number of examples, and one with as many labels.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Sequence
from itertools import takewhile
from math import prod
from typing import NamedTuple

from tfmemtop.events.courses import FOREVER
from tfmemtop.state.census_matching import Known
from tfmemtop.state.operation_names import Named, Phase, named
from tfmemtop.state.owners import Kind, Owner
from tfmemtop.state.step_course import WindowCourse
from tfmemtop.state.what_was_read import Shape, cast, images, read_by_product, swapped, tokens

_LEAST = 1024  # the least bytes of a chunk that is considered
_EXAMPLE = 128  # the least bytes of an example in a data set
_LABELS = 1, 4, 8  # possible bytes of a label that is one number
_PRODUCTS = frozenset({"MatMul", "_MklMatMul", "_FusedMatMul", "_MklFusedMatMul"})
_LOOKED_UP = frozenset({"GatherV2", "ResourceGather", "Gather", "embedding_lookup"})
_CALL = "PartitionedCall/"
_LOOP = "/while/body/"

Nameless = dict[int, list[int]]
"""Indices of spans, by their requested bytes."""


class Input(NamedTuple):
    """What a chunk likely contains; ``shape`` is ``None`` and ``dtype`` empty where they are not sure."""

    shape: Shape | None
    dtype: str


class _Made(NamedTuple):
    """A result of the step: allocated at event ``begin``, for operation ``one`` of ``layer``; ``looped`` in a loop."""

    begin: int
    end: int
    requested: int
    shape: Shape | None
    dtype: str
    one: Named
    layer: str
    looped: bool


class _Read(NamedTuple):
    """What a layer has read: ``rows`` examples of ``example`` bytes each."""

    rows: int
    example: int
    shape: Shape | None
    dtype: str

    @property
    def bytes(self) -> int:
        return self.rows * self.example

    @classmethod
    def of(cls, shape: Shape, dtype: str, item: int) -> "_Read":
        """Return what has this *shape*, with *item* bytes for each number; its first dimension are the rows."""
        return cls(shape[0], prod(shape[1:]) * item, shape, dtype)


def inputs(
    course: WindowCourse, owners: Sequence[Owner], variables: Sequence[tuple[Known, str]]
) -> Iterator[tuple[int, Input]]:
    """Yield the indices of spans of a whole step that are likely its input. *variables* are given with their layers."""
    nameless: Nameless = defaultdict(list)
    for place, owner in enumerate(owners):
        requested = course.kinds[course.holdings[place]].requested
        if owner.kind in (Kind.BEFORE, Kind.UNKNOWN) and not owner.operation and requested >= _LEAST:
            nameless[requested].append(place)
    for variable, _ in variables:
        nameless.pop(variable.bytes, None)
    if not nameless:
        return
    made = list(_made(course, owners))
    for size in _living_on(made):
        nameless.pop(size, None)
    constants = set(_of_loss(made))
    reads = list(_reads(made, variables, nameless))
    batches = [
        (read.bytes, Input(read.shape, read.dtype))
        for read in reads
        if len(nameless.get(read.bytes, ())) == 1 or read.bytes not in constants
    ]
    for found in (batches, list(_data(reads, made, nameless, constants))):
        kinds: dict[int, set[Input]] = defaultdict(set)
        for size, kind in found:
            if size in nameless:
                kinds[size].add(kind)
        for size, of_size in kinds.items():
            told = of_size.pop() if len(of_size) == 1 else Input(None, "")
            yield from ((place, told) for place in nameless[size])
        for size in kinds:
            del nameless[size]


def _made(course: WindowCourse, owners: Sequence[Owner]) -> Iterator[_Made]:
    """Yield the step's results, without those of data sets, whose operations run beside the step."""
    called = Counter(_CALL in course.name(course.kinds[holding]) for holding in set(course.holdings))
    for place, (holding, begin, end) in enumerate(zip(course.holdings, course.begins, course.ends, strict=True)):
        kind = course.kinds[holding]
        operation = course.name(kind)
        if begin < 0 or not operation or owners[place].python_name:
            continue
        one = named(operation)
        beside = called[True] > called[False] and _CALL not in operation
        if one.phase is Phase.INPUT or beside or operation == "GatherV2":
            continue
        shape = None if kind.shape is None else tuple(kind.shape)
        yield _Made(begin, end, kind.requested, shape, kind.dtype, one, owners[place].layer, _LOOP in operation)


def _living_on(made: list[_Made]) -> Iterator[int]:
    """Yield the bytes of results that outlive the step: chunks of that size may be results of the step before."""
    yield from (one.requested for one in made if one.end == FOREVER)


def _of_loss(made: list[_Made]) -> Iterator[int]:
    """Yield the bytes of what the loss is computed from, of the loss, and of its gradient.

    TensorFlow may keep constants of these sizes.
    """
    forward: _Made | None = None
    for one in made:
        if one.one.phase is Phase.BACKWARD:
            yield one.requested
            break
        if one.one.phase is Phase.FORWARD:
            forward = one
    if forward is not None:
        yield forward.requested
    yield from (one.requested for one in made if one.one.phase is Phase.LOSS)


def _reads(made: list[_Made], variables: Sequence[tuple[Known, str]], nameless: Nameless) -> Iterator[_Read]:
    """Yield what layers have read that was not made in the step."""
    kernels = _Kernels(made, variables)
    of_size: dict[int, list[_Made]] = defaultdict(list)
    for one in made:
        of_size[one.requested].append(one)
    for one in made:
        if one.one.phase is not Phase.FORWARD or one.shape is None or len(one.shape) < 2 or one.looped:
            continue
        if not all(one.shape):
            continue
        before = _Before(one, of_size)
        for choice in _choices(one, one.shape, kernels.of(one), nameless, before):
            standing = [read for read in choice if read.bytes in nameless]
            if len(standing) <= 1 and not any(read.bytes in before for read in choice):
                yield from standing or choice


def _choices(
    one: _Made, shape: Shape, kernels: list[Shape], nameless: Nameless, before: Container[int]
) -> Iterator[list[_Read]]:
    """Yield what *one* may be computed from: by its operation alone, and by each kernel of its layer."""
    if one.one.base == "Cast":
        yield [_Read.of(*read) for read in cast(shape, one.dtype)]
    elif one.one.base == "transpose":
        yield [_Read.of(*read) for read in swapped(shape, one.dtype)]
    for kernel in kernels:
        if len(kernel) == 2 and kernel[1] == shape[-1]:
            looked_up = one.one.base in _LOOKED_UP
            found = tokens(shape) if looked_up else read_by_product(shape, kernel, one.dtype)
            yield [_Read.of(*read) for read in found]
        elif len(kernel) > 2 and len(kernel) == len(shape):
            found_images = images(shape, kernel, one.dtype, nameless, before)
            yield [_Read(shape[0], size // shape[0], image, dtype) for size, image, dtype in found_images]


class _Before:
    """The sizes of results that other layers made in the step before *one*.

    Results of its own layer do not count: a layer may first copy what it has read.
    """

    def __init__(self, one: _Made, of_size: dict[int, list[_Made]]) -> None:
        self._one, self._of_size = one, of_size

    def __contains__(self, size: object) -> bool:
        one = self._one
        made = self._of_size.get(size, []) if isinstance(size, int) else []
        earlier = takewhile(lambda other: other.begin < one.begin, made)
        return any(other.layer != one.layer or not one.layer for other in earlier)


class _Kernels:
    """The kernels of layers: the variables of each layer, and shapes of gradients that identify a kernel."""

    def __init__(self, made: list[_Made], variables: Sequence[tuple[Known, str]]) -> None:
        self._shapes = {variable.shape for variable, _ in variables if variable.shape}
        self._of_operations: dict[tuple[str, ...], set[Shape]] = defaultdict(set)
        for one in made:
            if one.one.phase is Phase.BACKWARD and one.shape in self._shapes:
                self._of_operations[one.one.scopes].add(one.shape)
        self._of_layers: dict[str, set[Shape]] = defaultdict(set)
        for variable, layer in variables:
            path = layer.split("/") if variable.shape and layer else []
            for depth in range(len(path)):
                self._of_layers["/".join(path[: depth + 1])].add(variable.shape or ())

    def of(self, one: _Made) -> list[Shape]:
        """Return the kernels of the layer of *one* and of layers within it, and those that its gradients show.

        For a product outside of all layers, return the only variable that fits.
        """
        found = self._of_operations.get((*one.one.scopes, one.one.operation), set())
        found = found | (self._of_layers.get(one.layer, set()) if one.layer else set())
        if not found and not one.one.scopes and one.one.base in _PRODUCTS and one.shape:
            found = {shape for shape in self._shapes if len(shape) == 2 and shape[1] == one.shape[-1]}
            found = found if len(found) == 1 else set()
        return sorted(found)


def _data(
    reads: list[_Read], made: list[_Made], nameless: Nameless, constants: set[int]
) -> Iterator[tuple[int, Input]]:
    """Yield sizes of examples and labels of data sets: two sizes for the same count, at least that of a batch."""
    losses = {
        one.requested // one.shape[0] for one in made if one.one.phase is Phase.LOSS and one.shape and one.shape[0]
    }
    for read in set(reads):
        for size, places in nameless.items():
            count, rest = divmod(size, max(_EXAMPLE, read.example))
            if rest or count < read.rows or read.example < _EXAMPLE:
                continue
            labels = {count * label for label in {*_LABELS, *losses}} & nameless.keys() - {size}
            if count == read.rows:
                labels -= constants
            elif labels:
                yield size, Input((count, *read.shape[1:]) if read.shape else None, read.dtype)
            for label in labels if len(labels) == 1 else ():
                if len(nameless[label]) == len(places):
                    yield label, Input(None, "")
