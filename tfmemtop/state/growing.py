"""Allocations that are not freed and grow from window to window: the tensors of a leak. Pure.

Most of them were allocated between two windows and have no name. They are identified by allocations of the same size
that were made within a window and outlived it.
"""

from collections import Counter, defaultdict
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from tfmemtop.events import Holders, OperationLine
from tfmemtop.events.allocations import FOREVER
from tfmemtop.state.attribution import Kind, Owner, attribution
from tfmemtop.state.model import Hooked
from tfmemtop.state.operation_names import names_constant
from tfmemtop.state.windows import REMEMBERED, recorded, unpacked

_STAY = (Kind.VARIABLES, Kind.OPTIMIZER)
_SEVERAL = 2  # allocations


class Grown(msgspec.Struct, frozen=True):
    """Allocations of one size whose number has grown over the last windows.

    At the end of the last window there are ``count`` more than at the end of the first, with ``bytes`` bytes of chunks.
    There are ``windows`` windows, over ``span_s`` seconds, and each has more than the one before. Each allocation
    requested ``each`` bytes. ``shape`` is ``None`` if it is not known. ``operation`` is empty if it is not known,
    ``layer`` if there is none, and ``python_name`` if no holder in Python was found.
    """

    operation: str
    shape: tuple[int, ...] | None
    dtype: str
    each: int
    count: int
    bytes: int
    windows: int
    span_s: float
    layer: str
    line: OperationLine | None
    python_name: str

    @property
    def rate(self) -> float:
        """The growth in bytes a second."""
        return self.bytes / self.span_s if self.span_s > 0 else 0.0


def growing(hooked: Hooked, device: str) -> list[Grown]:
    """Return what has grown from window to window in a pool up to the newest window, the most bytes first."""
    # Only windows with a whole step: at the end of a step, only the memory that it keeps is left.
    known = [window for window in recorded(hooked.windows.get(device)) if window.steps]
    if len(known) < 2:
        return []
    key = "growing", *(window.began for window in known)
    return attribution(known[-1], hooked).once(key, lambda: _growing(known, hooked))


def _growing(known: list[Holders], hooked: Hooked) -> list[Grown]:
    counts = [_remaining(window) for window in known]
    found = []
    for requested, (last, size) in counts[-1].items():
        since = len(known) - 1
        while since and _count(counts[since - 1], requested) < _count(counts[since], requested):
            since -= 1
        if (more := last - _count(counts[since], requested)) > 0:
            found.append((size * more // last, requested, more, since))
    whose = _whose(known, hooked, {requested for _, requested, _, _ in found})
    return [
        Grown(
            operation=owner.operation,
            shape=owner.shape,
            dtype=owner.dtype,
            each=requested,
            count=count,
            bytes=size,
            windows=len(known) - since,
            span_s=known[-1].ended - known[since].ended,
            layer=owner.layer,
            line=owner.line,
            python_name=name,
        )
        for size, requested, count, since in sorted(found, reverse=True)
        for owner, name in [whose[requested]]
    ]


def _count(counts: dict[int, tuple[int, int]], requested: int) -> int:
    return counts.get(requested, (0, 0))[0]


@lru_cache(REMEMBERED)
def _remaining(window: Holders) -> dict[int, tuple[int, int]]:
    """Return, by requested bytes, how many allocations outlive the window, and their bytes of chunks."""
    course = unpacked(window)
    found: dict[int, tuple[int, int]] = {}
    for holding, end in zip(course.holdings, course.ends, strict=True):
        if end == FOREVER:
            kind = course.kinds[holding]
            count, size = found.get(kind.requested, (0, 0))
            found[kind.requested] = count + 1, size + kind.size
    return found


def _whose(windows: list[Holders], hooked: Hooked, sizes: set[int]) -> dict[int, tuple[Owner, str]]:
    """Return, for each size, the owner that describes its allocations best, and by which name Python holds most.

    It has the operation that made most of them in the windows, but not one that made a single constant. The name is
    that of the newest window in which one was found.
    """
    best: dict[int, tuple[tuple[bool, int, bool], Owner]] = {}
    made = defaultdict[int, Counter[str]](Counter)
    names: dict[int, str] = {}
    known = [(unpacked(window), attribution(window, hooked)) for window in windows]
    for course, owners in known:
        for place, end in enumerate(course.ends):
            requested = course.kinds[course.holdings[place]].requested
            if end == FOREVER and requested in sizes and course.begins[place] >= 0:
                made[requested][owners.of[place].operation] += 1
    for course, owners in known:
        held = defaultdict[int, Counter[str]](Counter)
        for place, end in enumerate(course.ends):
            requested = course.kinds[course.holdings[place]].requested
            if end == FOREVER and requested in sizes:
                owner = owners.of[place]
                number = made[requested][owner.operation] if course.begins[place] >= 0 else 0
                tells = owner.kind not in _STAY, number, bool(owner.operation)
                if requested not in best or tells >= best[requested][0]:
                    best[requested] = tells, owner
                held[requested][owner.python_name if owner.kind is Kind.TENSORS else ""] += 1
        for requested, by_name in held.items():
            name, count = by_name.most_common(1)[0]
            if name and count * 2 >= by_name.total():
                names[requested] = name
    found = {}
    for requested, (_, owner) in best.items():
        once = made[requested][owner.operation] < _SEVERAL and names_constant(owner.operation)
        owner = replace(owner, operation="", layer="", line=None) if once else owner
        found[requested] = owner, names.get(requested, "")
    return found
