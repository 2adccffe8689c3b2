"""Computes what lies in the temporary buffer of a cluster over its schedule, from XLA's own texts."""

import re
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from tfmemtop.engine.sources.xla_assignment import Allocation, Assignment, PlacedValue, Unread, read_assignment
from tfmemtop.engine.sources.xla_origins import Origins
from tfmemtop.events import XlaCluster, XlaValue

KEPT = 600
"""The most values that are kept: the largest."""


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
    temporary = [each for each in assignment.allocations if each.temporary and each.size]
    if not temporary:
        return None
    buffer = max(temporary, key=lambda each: each.size)
    living = _living(buffer, assignment)
    peak, peak_at = _peak(living)
    at_peak = [one for one in living if one.first <= peak_at <= one.last]
    _fits(at_peak, buffer.size)
    _agrees(assignment)
    kept = sorted(at_peak, key=lambda one: -one.value.size)[:KEPT]
    origins = Origins(module_lines)
    return XlaCluster(
        t=t,
        pid=pid,
        name=function_name(name),
        module=module,
        temporary=buffer.size,
        peak=peak,
        peak_at=peak_at,
        values=[_value(one, origins) for one in sorted(kept, key=lambda one: one.value.offset)],
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


def _peak(living: list[Living]) -> tuple[int, int]:
    """Return the most bytes that are needed at one moment, and the first such moment."""
    changes: dict[int, int] = {}
    for one in living:
        changes[one.first] = changes.get(one.first, 0) + one.value.size
        changes[one.last + 1] = changes.get(one.last + 1, 0) - one.value.size
    peak, peak_at, now = 0, 0, 0
    for moment in sorted(changes):
        now += changes[moment]
        if now > peak:
            peak, peak_at = now, moment
    return peak, peak_at


def _fits(at_peak: list[Living], size: int) -> None:
    """Check that the values of one moment, by offset, lie side by side within *size* bytes.

    Raises:
        Unread: two values overlap, or one lies beyond *size*.
    """
    end = 0
    for one in at_peak:
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
