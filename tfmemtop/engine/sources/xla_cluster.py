"""Computes what lies in the temporary buffer of a cluster over its schedule, from XLA's own texts."""

import re
from bisect import bisect_right
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from tfmemtop.engine.sources.xla_assignment import Allocation, Assignment, PlacedValue, Purpose, Unread, read_assignment
from tfmemtop.engine.sources.xla_origins import Origins
from tfmemtop.events import XlaCluster, XlaValue

KEPT_AT_PEAK, KEPT = 600, 900
"""The most values that are kept: of those at the peak, and of all. The largest are kept in both cases."""
PARTS = 500
"""The most parts of the schedule for which the course of the needed bytes is kept."""


class Living(msgspec.Struct, frozen=True):
    """A value that is needed from moment ``first`` to moment ``last``."""

    value: PlacedValue
    first: int
    last: int


def make_cluster(
    lines: Iterable[str], module_lines: Iterable[str], *, pid: int, name: str, module: int, t: float
) -> XlaCluster | None:
    """Return the cluster whose buffer assignment XLA wrote as *lines*, and whose module as *module_lines*.

    ``None`` if the cluster has no temporary buffer. Where XLA allocates several, the largest one is described.

    Raises:
        Unread: the buffer assignment is not in a known form, or does not add up.
    """
    assignment = read_assignment(lines)
    sizes = dict.fromkeys(Purpose, 0)
    for allocation in assignment.allocations:
        sizes[allocation.purpose] += allocation.size
    temporary = [each for each in assignment.allocations if each.purpose is Purpose.TEMPORARY and each.size]
    if not temporary:
        return None
    buffer = max(temporary, key=lambda each: each.size)
    living = _living(buffer, assignment)
    moments, needed = _course(living)
    peak, peak_at = max(((size, -moment) for moment, size in zip(moments, needed, strict=True)), default=(0, 0))
    peak_at = -peak_at
    _fits(living, peak_at, buffer.size)
    _agrees(assignment)
    kept, others = _largest(living, peak_at)
    origins = Origins(module_lines)
    return XlaCluster(
        t=t,
        pid=pid,
        name=function_name(name),
        module=module,
        temporary=buffer.size,
        schedule=assignment.schedule,
        peak=peak,
        peak_at=peak_at,
        others=others,
        parameters=sizes[Purpose.PARAMETER],
        outputs=sizes[Purpose.OUTPUT],
        constants=sizes[Purpose.CONSTANT],
        course=_parts(moments, needed, assignment.schedule),
        values=[_value(one, origins) for one in kept],
    )


_BRIDGES = re.compile(r"(?:cluster_|a_|__)?(?:inference_)?(.+?)(?:_\d+)?(?:__XlaMustCompile\w*|__)?(?:\.\d+)*$")


def function_name(module: str) -> str:
    """Return the name of the function from which XLA's bridge made *module*.

    ``a_inference_one_step_on_data_1421__.9`` was made from ``one_step_on_data``.
    """
    found = _BRIDGES.match(module)
    return found[1] if found else module


def _living(buffer: Allocation, assignment: Assignment) -> list[Living]:
    """Return the values in *buffer*, by offset, so that no two are in one place at one moment.

    XLA counts a value as needed also at the moment at which another takes its place. It gives one place to all the
    values that a loop passes on. Here each place is counted once at each moment, for the value that came last.

    Raises:
        Unread: a value has no live range.
    """
    by_place: dict[tuple[int, int], list[Living]] = {}
    for value in buffer.values:
        if value.key not in assignment.ranges:
            raise Unread("BufferLiveRange")
        first, last = assignment.ranges[value.key]
        if value.size:
            by_place.setdefault((value.offset, value.size), []).append(Living(value, first, last))
    found: list[Living] = []
    for place in sorted(by_place):
        found += _one_after_the_other(by_place[place])
    return found


def _one_after_the_other(sharing: list[Living]) -> list[Living]:
    found: list[Living] = []
    for one in sorted(sharing, key=lambda one: (one.first, -one.last)):
        before = found[-1] if found else None
        if before and one.last <= before.last and (one.first == before.first or one.last < before.last):
            continue  # another value has the same bytes during all of this time
        if before and one.first <= before.last:
            found[-1] = replace(before, last=one.first - 1)
        found.append(one)
    return found


def _course(living: list[Living]) -> tuple[list[int], list[int]]:
    """Return the moments at which a value begins or ends, and the bytes needed from each of them on."""
    changes: dict[int, int] = {}
    for one in living:
        changes[one.first] = changes.get(one.first, 0) + one.value.size
        changes[one.last + 1] = changes.get(one.last + 1, 0) - one.value.size
    moments, needed, now = sorted(changes), [], 0
    for moment in moments:
        now += changes[moment]
        needed.append(now)
    return moments, needed


def _parts(moments: list[int], needed: list[int], schedule: int) -> list[int]:
    """Return the most bytes that are needed in each of at most :data:`PARTS` equal parts of the schedule."""
    count = min(PARTS, schedule)
    found = []
    for part in range(count):
        begin, end = part * schedule // count, (part + 1) * schedule // count
        before = bisect_right(moments, begin) - 1
        within = needed[max(before, 0) : bisect_right(moments, end - 1)]
        found.append(max(within, default=0))
    return found


def _fits(living: list[Living], moment: int, size: int) -> None:
    """Check that the values needed at *moment* lie side by side within *size* bytes.

    Raises:
        Unread: two values overlap, or one lies beyond *size*.
    """
    end = 0
    for one in living:  # by offset
        if one.first <= moment <= one.last:
            if one.value.offset < end:
                raise Unread("offset")
            end = one.value.offset + one.value.size
    if end > size:
        raise Unread("offset")


def _agrees(assignment: Assignment) -> None:
    """Check the sizes against XLA's own list of the values at the moment for which it counts the most bytes.

    Nothing is checked if XLA wrote no such list.

    Raises:
        Unread: a size differs.
    """
    if not assignment.at_peak:
        return
    sizes = {value.key: value.size for each in assignment.allocations for value in each.values}
    if any(sizes.get(key, size) != size for key, size in assignment.at_peak.items()):
        raise Unread("Live ranges")


def _largest(living: list[Living], peak_at: int) -> tuple[list[Living], int]:
    """Return the values to keep, by offset, and the bytes of those at the peak that are left out."""
    there = [one for one in living if one.first <= peak_at <= one.last]
    beside = [one for one in living if not one.first <= peak_at <= one.last]
    there.sort(key=lambda one: -one.value.size)
    beside.sort(key=lambda one: -one.value.size)
    left_out = sum(one.value.size for one in there[KEPT_AT_PEAK:])
    kept = there[:KEPT_AT_PEAK]
    kept += beside[: KEPT - len(kept)]
    return sorted(kept, key=lambda one: (one.value.offset, one.first)), left_out


def _value(one: Living, origins: Origins) -> XlaValue:
    origin = origins.of(one.value.name)
    return XlaValue(
        instruction=one.value.name + one.value.index,
        operation=origin.operation,
        shape=one.value.shape,
        offset=one.value.offset,
        size=one.value.size,
        first=one.first,
        last=one.last,
        file=origin.file,
        line=origin.line,
    )
