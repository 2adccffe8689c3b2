"""Requests like one that failed, in the windows that were recorded before: how large they were. Pure."""

from collections.abc import Set

import msgspec

from tfmemtop.events import Holding
from tfmemtop.state.holder_choice import recorded
from tfmemtop.state.model import Hooked
from tfmemtop.state.operation_names import named
from tfmemtop.state.step_course import unpacked

_MATRIX = 2  # dimensions


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
) -> PastRequest | None:
    """Return the largest earlier request like one for *shape* by *operation*, in windows that began by *before*.

    It is one by the same operation, if that is known by its name in a graph; else one for a tensor of as many
    dimensions, most of which are equal. What has the shape of one of the *variables* is left out: its size is not that
    of a batch. ``None`` if neither name nor shape is known.
    """
    windows = hooked.windows.get(device)
    name = operation if operation and not operation.startswith("__") else None
    if shape is None and name is None:
        return None
    found: list[PastRequest] = []
    for window in recorded(windows) if windows else ():
        if window.began > before:
            continue
        course = unpacked(window)
        found += [
            PastRequest(tuple(kind.shape or ()), kind.requested)
            for kind in course.kinds
            if tuple(kind.shape or ()) not in variables
            and (name is None or _same(course.name(kind), name, whole=shape is None))
            and (shape is None or _smaller(kind, shape))
        ]
    return max(found, key=lambda one: one.bytes, default=None)


def _same(one: str, other: str, *, whole: bool) -> bool:
    """Return whether two names are of the same operation: of the same layer too, if the *whole* names are compared."""
    return one == other if whole else named(one).base == named(other).base


def _smaller(kind: Holding, shape: list[int]) -> bool:
    """Return whether an allocation was for a smaller tensor of that kind: at least half of its dimensions are equal.

    A tensor that has the new size of a dimension belongs to the same batch as the one that failed. In a matrix the last
    dimension is the width of a layer: if that differs, it is another layer's.
    """
    if kind.shape is None or len(kind.shape) != len(shape) or not shape:
        return False
    if len(shape) == _MATRIX and kind.shape[-1] != shape[-1]:
        return False
    pairs = list(zip(kind.shape, shape, strict=True))
    larger = {new for old, new in pairs if new > old}
    equal = sum(old == new for old, new in pairs)
    return (
        equal * 2 >= len(shape)
        and all(new >= old for old, new in pairs)
        and bool(larger)
        and larger.isdisjoint(kind.shape)
    )
