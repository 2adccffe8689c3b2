"""The temporary buffer of a cluster that XLA compiled: the values in it at its peak and over its schedule. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from tfmemtop.events import XlaCluster, XlaValue


class XlaPart(Enum):
    """What a row stands for."""

    OPERATION = "operation"
    OTHERS = "others"  # values that the report does not list one by one
    SPARE = "spare"  # bytes that no value needs at the peak: they are for other moments, or for alignment


@dataclass(frozen=True, slots=True)
class XlaRow:
    """``bytes`` of the buffer that belong to one operation at the peak, in ``count`` values.

    ``operation`` is TensorFlow's name of the operation, or if there is none, XLA's name of the instruction. ``shared``
    of the bytes are used by other values at other moments. ``values`` has the largest first.
    """

    part: XlaPart
    operation: str
    bytes: int
    count: int
    shared: int
    values: tuple[XlaValue, ...] = ()


@dataclass(frozen=True, slots=True)
class XlaMoment:
    """One of several equal parts of the schedule. It begins at moment ``begin``.

    ``needed`` bytes are needed at its highest moment. ``by_operation`` has those of them whose operation is known.
    """

    begin: int
    needed: int
    by_operation: dict[str, int] = field(default_factory=dict)


def xla_rows(cluster: XlaCluster) -> list[XlaRow]:
    """Return the parts of the buffer of *cluster* at its peak, the largest first. They add up to ``temporary``."""
    there = [value for value in cluster.values if value.first <= cluster.peak_at <= value.last]
    reused = _joined((v.offset, v.offset + v.size) for v in cluster.values if not v.first <= cluster.peak_at <= v.last)
    by_operation: dict[str, list[XlaValue]] = {}
    for value in sorted(there, key=lambda value: -value.size):
        by_operation.setdefault(_name(value), []).append(value)
    rows = [
        XlaRow(
            XlaPart.OPERATION,
            operation,
            sum(value.size for value in values),
            len(values),
            sum(_overlap(value, reused) for value in values),
            tuple(values),
        )
        for operation, values in by_operation.items()
    ]
    rows.sort(key=lambda row: -row.bytes)
    known = sum(row.bytes for row in rows)
    others = max(0, cluster.peak - known)
    spare = max(0, cluster.temporary - known - others)
    rows += [XlaRow(XlaPart.OTHERS, "", others, 0, 0)] if others else []
    return rows + ([XlaRow(XlaPart.SPARE, "", spare, 0, 0)] if spare else [])


def saved_by_reuse(cluster: XlaCluster) -> int:
    """Return the bytes that *cluster* saves because values share their places."""
    return max(0, cluster.unshared - cluster.temporary)


def xla_course(cluster: XlaCluster) -> list[XlaMoment]:
    """Return how many bytes of the buffer of *cluster* are needed, for each part of its schedule."""
    parts = len(cluster.course)
    highest: list[tuple[int, dict[str, int]]] = [(0, {})] * parts
    for begin, end, now in _spans(cluster):
        size = sum(now.values())
        first, last = _part(begin, cluster.schedule, parts), _part(end - 1, cluster.schedule, parts)
        for part in range(first, min(last + 1, parts)):
            if size > highest[part][0]:
                highest[part] = size, now
    return [
        XlaMoment(part * cluster.schedule // parts, max(cluster.course[part], size), now)
        for part, (size, now) in enumerate(highest)
    ]


def _spans(cluster: XlaCluster) -> Iterator[tuple[int, int, dict[str, int]]]:
    """Yield stretches of the schedule in which the same values are needed: first moment, end, bytes by operation."""
    changes: dict[int, list[tuple[str, int]]] = {}
    for value in cluster.values:
        changes.setdefault(value.first, []).append((_name(value), value.size))
        changes.setdefault(value.last + 1, []).append((_name(value), -value.size))
    now: dict[str, int] = {}
    moments = sorted(changes)
    for moment, following in pairwise(moments):
        now = dict(now)
        for operation, size in changes[moment]:
            now[operation] = now.get(operation, 0) + size
            if not now[operation]:
                del now[operation]
        yield moment, following, now


def _part(moment: int, schedule: int, parts: int) -> int:
    """Return the number of the part of the schedule that contains *moment*."""
    part = moment * parts // schedule
    # Parts begin at whole moments, so the result of the division may be too low by one.
    return part + 1 if part + 1 < parts and (part + 1) * schedule // parts <= moment else part


def _name(value: XlaValue) -> str:
    return value.operation or value.instruction


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return *ranges* of addresses; ranges that touch or overlap become one."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def _overlap(value: XlaValue, ranges: list[tuple[int, int]]) -> int:
    """Return how many bytes of *value* lie in *ranges*."""
    end = value.offset + value.size
    return sum(max(0, min(end, high) - max(value.offset, low)) for low, high in ranges)
