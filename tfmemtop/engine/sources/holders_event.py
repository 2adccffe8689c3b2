"""Makes the event of one part of a window: the holders of a pool, each allocation from its beginning to its end.

The size of an event is bounded, whatever its window contains.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from tfmemtop.engine.sources.pool_replay import Alike, Life, PoolCourse, surplus
from tfmemtop.events import Closed, Damage, Holders, Holding, Opened, Window, Windowless
from tfmemtop.events.allocations import FOREVER, WindowAllocations, pack
from tfmemtop.events.holders import MOST_PACKED

_KINDS, _SPANS = 4096, 2**15  # in one event

_SHAPE = re.compile(r"\[(\d{1,18}(?:,\d{1,18})*)?\]")
_DIMENSIONS = 256

# ``DataType`` of tensorflow/core/framework/types.proto, by its number.
_DTYPES = (
    *("", "float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8"),
    *("quint8", "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "float16", "resource", "variant"),
    *("uint32", "uint64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"),
    *("int4", "uint4", "int2", "uint2", "float4_e2m1fn"),
)
_REFERENCE = 100  # TensorFlow adds this to the number of a type for a reference to it

# The names of RegionOf() in probe/window.h, by its numbers.
_REGIONS = ("", "output", "temp", "persist", "dynamic")


def nothing_of(window: Window, why: Windowless | Damage, detail: str = "", *, t: float) -> list[Holders]:
    """Return an event for each pool of *window* that reports why its file cannot be read, or why there is no window."""
    return [
        Holders(
            t=t,
            pid=window.pid,
            device=device,
            window=window.window,
            opened=window.opened,
            closed=window.closed or Closed.EXIT,
            began=0.0,
            ended=0.0,
            function=window.function,
            cost_us=window.cost_us,
            windowless=why if isinstance(why, Windowless) else None,
            damage=why if isinstance(why, Damage) else None,
            detail=detail,
        )
        for device in window.pools
    ]


class WindowPart(NamedTuple):
    """A part of a course: its first event, the one after its last, and the number of its whole steps.

    ``began`` is when it began, in ns of CLOCK_REALTIME. ``opened`` is what the event has.
    """

    first: int
    last: int
    steps: int
    began: int
    opened: Opened


def holders_of(
    window: Window,
    device: str,
    course: PoolCourse,
    part: WindowPart,
    *,
    clock: Callable[[int], float],
    t: float,
    phase: str = "",
) -> Holders:
    """Return the event for one part of *course*, that of the *phase* of this name.

    *clock* converts ns of CLOCK_REALTIME to
    session seconds. *t* is the time of the event.
    """
    first, last, began = part.first, part.last, part.began
    times, in_use = course.at_ns[first:last], course.in_use[first:last]
    before = course.in_use[first - 1] if first else course.before
    peak = max(before, *in_use) if in_use else before
    peak_at = in_use.index(peak) if peak > before else -1
    lived = _without_surplus(_cut(course, first, last), peak, peak_at)
    passed = [max(0, (at_ns - began) // 1000) for at_ns in times]
    between = [max(0, now - earlier) for earlier, now in pairwise([0, *passed])]
    ended = times[-1] if times else began
    since = max(0.0, clock(began))
    return Holders(
        t=t,
        pid=window.pid,
        device=device,
        window=window.window,
        opened=part.opened,
        closed=window.closed or Closed.OPEN,
        phase=phase,
        began=since,
        ended=max(since, clock(ended)),
        function=window.function,
        steps=float(part.steps) if part.steps else None,
        before=before,
        peak=peak,
        peak_at=peak_at,
        lost=course.lost(first, last),
        packed=_packed(lived, peak_at, between),
        cost_us=window.cost_us,
    )


def _cut(course: PoolCourse, first: int, last: int) -> list[Life]:
    """Return what lived from event *first* to before event *last*. Their events are counted from *first*."""
    found = []
    for life in course.lives:
        if life.begin >= last:
            break
        if life.end == FOREVER or life.end >= first:
            end = FOREVER if life.end == FOREVER or life.end >= last else life.end - first
            found.append(Life(life.alike, life.address, max(life.begin - first, -1), end))
    return found


def _without_surplus(lived: list[Life], peak: int, peak_at: int) -> list[Life]:
    """Return those of *lived* that can be in use, as no more than *peak* bytes were in use at event *peak_at*.

    The others were freed without a record.
    """
    there = [life for life in lived if life.at(peak_at)]
    gone = {id(life) for life in surplus(there, sum(life.alike.size for life in there) - peak)}
    return [life for life in lived if id(life) not in gone]


def _packed(lived: list[Life], peak_at: int, times: list[int]) -> bytes:
    """Return the packed allocations: all if there is room, else the largest at the peak. The rest has no name then."""
    most_kinds, most_spans = _KINDS, _SPANS
    while True:
        packed = pack(_content(_largest(lived, peak_at, most_kinds, most_spans), times))
        if len(packed) <= MOST_PACKED:
            return packed
        most_kinds, most_spans = most_kinds // 2, most_spans // 2


def _largest(lived: list[Life], peak_at: int, most_kinds: int, most_spans: int) -> list[Life]:
    """Return the allocations that the event describes, in their order."""
    kinds = {life.alike for life in lived}
    if len(lived) <= most_spans and len(kinds) <= most_kinds:
        return lived
    kinds.clear()
    listed: set[int] = set()
    for life in sorted(lived, key=lambda life: (life.at(peak_at), life.alike.size), reverse=True)[:most_spans]:
        if len(kinds) < most_kinds:
            kinds.add(life.alike)
        if life.alike in kinds:
            listed.add(id(life))
    return [life for life in lived if id(life) in listed]


def _content(listed: list[Life], times: list[int]) -> WindowAllocations:
    names: dict[str, int] = {}
    kinds: dict[Alike, int] = {}
    return WindowAllocations(
        holdings=[kinds.setdefault(life.alike, len(kinds)) for life in listed],
        kinds=[_holding(alike, names) for alike in kinds],
        names=list(names),
        addresses=[life.address for life in listed],
        begins=[life.begin for life in listed],
        ends=[life.end for life in listed],
        times=times,
    )


def _holding(alike: Alike, names: dict[str, int]) -> Holding:
    operation = names.setdefault(alike.operation, len(names)) if alike.operation else None
    return Holding(
        operation,
        _dimensions(alike.shape),
        _dtype_name(alike.dtype),
        region_name(alike.region),
        alike.requested,
        alike.size,
        max(0, alike.window),
    )


def _dimensions(shape: str) -> list[int] | None:
    """Return the dimensions in TensorFlow's text of a shape, such as ``[32,10]``; ``None`` if they are not known."""
    found = _SHAPE.fullmatch(shape)
    if found is None:
        return None
    sizes = [int(size) for size in found[1].split(",")] if found[1] else []
    return sizes if len(sizes) <= _DIMENSIONS else None


def _dtype_name(number: int) -> str:
    """Return TensorFlow's name of a type, such as ``float32``; empty if TensorFlow gave no type."""
    number = number - _REFERENCE if number > _REFERENCE else number
    return _DTYPES[number] if number < len(_DTYPES) else f"type {number}"


def region_name(number: int) -> str:
    """Return what the memory is used for: ``output``, ``temp``, ``persist`` or ``dynamic``; empty for anything else."""
    return _REGIONS[number] if number < len(_REGIONS) else ""
