"""What is allocated and not freed, more from window to window: who a leak's tensors are. Pure.

Most of them were allocated between two windows and have no name. Those of their size that a window saw being made, and
that outlived it, tell what they are.
"""

from dataclasses import dataclass

from tfmemtop.events import Holders, OperationLine
from tfmemtop.events.courses import FOREVER
from tfmemtop.state.attribution import Kind, Owner, attribution
from tfmemtop.state.holder_choice import told
from tfmemtop.state.model import Hooked
from tfmemtop.state.step_course import once_per_window, unpacked

_STAY = (Kind.VARIABLES, Kind.OPTIMIZER)


@dataclass(frozen=True, slots=True)
class Grown:
    """Of allocations of one size ``count`` more, ``bytes`` of chunks, stand as the last window ends than the first.

    There are ``windows`` of them, ``span_s`` apart, and each has more than the one before. ``each`` bytes were asked
    for; ``shape`` is ``None`` if it is not known. Empty are an ``operation`` that is not known, the ``layer`` where
    there is none, and ``python_name`` where nothing in Python was found to hold them.
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
        """Bytes a second."""
        return self.bytes / self.span_s if self.span_s > 0 else 0.0


def growing(hooked: Hooked, device: str) -> list[Grown]:
    """What grows from window to window in a pool up to the newest window, the most bytes first."""
    windows = hooked.windows.get(device)
    # As a step ends there is nothing of it left but what it keeps.
    known = [window for window in told(windows) if window.steps] if windows else []
    if len(known) < 2:
        return []
    key = "growing", *(window.window for window in known)
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


@once_per_window
def _remaining(window: Holders) -> dict[int, tuple[int, int]]:
    """How many allocations stand as the window ends, and their bytes, by what was asked for."""
    course = unpacked(window)
    found: dict[int, tuple[int, int]] = {}
    for holding, end in zip(course.holdings, course.ends, strict=True):
        if end == FOREVER:
            kind = course.kinds[holding]
            count, size = found.get(kind.requested, (0, 0))
            found[kind.requested] = count + 1, size + kind.size
    return found


def _whose(windows: list[Holders], hooked: Hooked, sizes: set[int]) -> dict[int, tuple[Owner, str]]:
    """Who best tells what the allocations of each size are, and what Python holds one by."""
    best: dict[int, tuple[tuple[bool, bool, bool], Owner]] = {}
    names: dict[int, str] = {}
    for window in windows:
        course, owners = unpacked(window), attribution(window, hooked)
        for place, end in enumerate(course.ends):
            requested = course.kinds[course.holdings[place]].requested
            if end == FOREVER and requested in sizes:
                owner = owners.of[place]
                tells = owner.kind not in _STAY, course.begins[place] >= 0, bool(owner.operation)
                if requested not in best or tells >= best[requested][0]:
                    best[requested] = tells, owner
                if owner.kind is Kind.TENSORS and owner.python_name:
                    names[requested] = owner.python_name
    return {requested: (owner, names.get(requested, "")) for requested, (_, owner) in best.items()}
