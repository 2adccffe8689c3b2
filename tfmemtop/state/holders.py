"""Who holds what a pool has in use, at a moment of a window: rows that add up to the byte. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from tfmemtop.events import Holders, Holding, OperationLine
from tfmemtop.state.attribution import Attribution, Owner, attribution
from tfmemtop.state.attribution import Kind as Kind
from tfmemtop.state.model import Hooked
from tfmemtop.state.operation_names import named
from tfmemtop.state.step_course import times_us, unpacked


class By(Enum):
    """What rows are grouped by."""

    LAYER = "layer"
    OPERATION = "op"
    KIND = "kind"
    SHAPE = "shape"
    LINE = "line"


@dataclass(frozen=True, slots=True)
class Part:
    """``count`` allocations that are alike, ``bytes`` of chunks in all, of which ``requested`` were asked for.

    ``operation`` is TensorFlow's whole name, empty if there is none. ``shape`` is ``None`` if it is not known.
    ``kept`` if it outlives the beginning of the backward pass that follows. ``python_name`` is that of the variable,
    or what Python holds the tensor by; empty if it is neither.
    """

    operation: str
    shape: tuple[int, ...] | None
    dtype: str
    region: str
    bytes: int
    requested: int
    count: int
    line: OperationLine | None
    python_name: str
    kind: Kind
    layer: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Holder:
    """A row. ``name`` is empty where all that is known is the kind, which is that of most of its bytes."""

    name: str
    kind: Kind
    bytes: int
    count: int
    parts: tuple[Part, ...]  # the largest first


@dataclass(frozen=True, slots=True)
class Standing:
    """What is in use after event ``at``: ``total`` bytes, those of the ``holders`` and ``unknown`` ones.

    Of the unknown bytes ``nameless`` has those for which TensorFlow gave no name; the rest was allocated in events that
    are lost.
    """

    at: int
    total: int
    holders: tuple[Holder, ...]  # the largest first
    unknown: int
    nameless: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """After ``event``, ``at_us`` µs into the window: ``total`` bytes are in use, by kind."""

    event: int
    at_us: int
    by_kind: dict[Kind, int]
    total: int


@dataclass(frozen=True, slots=True)
class Place:
    """What lies at an address: ``part`` of ``layer``, since ``since`` seconds of the session or before the window."""

    part: Part
    since: float | None
    address: int
    size: int


def standing(window: Holders, hooked: Hooked, by: By, at: int | None = None) -> Standing:
    """Who holds what after event *at* of *window*, by default at its peak.

    The rows' bytes and ``unknown`` add up to ``total``; at the peak that is what TensorFlow's allocator said.
    """
    course, owners = unpacked(window), attribution(window, hooked)
    at = window.peak_at if at is None else at
    alive = Counter((owners.of[place], course.holdings[place]) for place in course.alive(at))
    sized = ((owner, course.kinds[kind], count) for (owner, kind), count in alive.items())
    parts = _parts(owners, sized)
    nameless = tuple(part for part in parts if part.kind is Kind.UNKNOWN)
    rows: dict[str, list[Part]] = {}
    for part in parts:
        if part.kind is not Kind.UNKNOWN:
            rows.setdefault(_row(part, by), []).append(part)
    holders = sorted((_holder(name, of_row) for name, of_row in rows.items()), key=lambda row: (-row.bytes, row.name))
    unknown = course.nobodys + sum(part.bytes for part in nameless)
    return Standing(at, sum(holder.bytes for holder in holders) + unknown, tuple(holders), unknown, nameless)


def course(window: Holders, hooked: Hooked) -> list[Moment]:
    """What is in use, by kind, before the first event (``event`` -1) and after each one."""
    course, owners = unpacked(window), attribution(window, hooked)
    changes: list[list[tuple[int, int]]] = [[] for _ in range(course.events + 1)]  # place, sign
    for place, (begin, end) in enumerate(zip(course.begins, course.ends, strict=True)):
        changes[begin + 1].append((place, 1))
        if end >= 0:
            changes[end + 1].append((place, -1))
    times = times_us(window)
    now: dict[Kind, int] = {Kind.UNKNOWN: course.nobodys} if course.nobodys else {}
    moments, total = [], course.nobodys
    for number, of_event in enumerate(changes):
        for place, sign in of_event:
            for kind, size in owners.kinds_of(place):
                now[kind] = now.get(kind, 0) + sign * size
                total += sign * size
        at_us = times[min(number, len(times)) - 1] if number and times else 0
        moments.append(Moment(number - 1, at_us, dict(now), total))
    return moments


def holder_at(window: Holders, hooked: Hooked, address: int) -> Place | None:
    """What lay at *address* as *window* ended; ``None`` if nothing is known of it."""
    course, owners = unpacked(window), attribution(window, hooked)
    place = course.last_at(address)
    if place is None:
        return None
    size, begin = course.sizes[place], course.begins[place]
    part = _part(owners.of[place], size, course.kinds[course.holdings[place]].requested, 1)
    times = times_us(window)
    since = window.began + times[begin] / 1e6 if 0 <= begin < len(times) else None
    return Place(part, since, course.addresses[place], size)


def _parts(owners: Attribution, alive: Iterable[tuple[Owner, Holding, int]]) -> list[Part]:
    sums: dict[Owner, list[int]] = {}
    for owner, kind, count in alive:
        for opened, size, requested, times in owners.opened(owner, kind, count):
            row = sums.setdefault(opened, [0, 0, 0])
            row[0] += size
            row[1] += requested
            row[2] += times
    parts = [_part(owner, *row) for owner, row in sums.items()]
    return sorted(parts, key=lambda part: (-part.bytes, part.operation))


def _part(owner: Owner, size: int, requested: int, count: int) -> Part:
    return Part(
        operation=owner.operation,
        shape=owner.shape,
        dtype=owner.dtype,
        region=owner.region,
        bytes=size,
        requested=requested,
        count=count,
        line=owner.line,
        python_name=owner.python_name,
        kind=owner.kind,
        layer=owner.layer,
        kept=owner.kept,
    )


def _holder(name: str, parts: Iterable[Part]) -> Holder:
    kinds: Counter[Kind] = Counter()
    count = 0
    for part in parts:
        kinds[part.kind] += part.bytes
        count += part.count
    named = "" if name.startswith("\0") else name
    return Holder(named, max(kinds, key=lambda kind: kinds[kind]), sum(kinds.values()), count, tuple(parts))


def _row(part: Part, by: By) -> str:
    """The row's name, or a zero and the kind where there is none."""
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
    if part.kind in (Kind.ACTIVATIONS, Kind.GRADIENTS) and part.operation:
        return part.layer or named(part.operation).base
    return part.layer or nameless
