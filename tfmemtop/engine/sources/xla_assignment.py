"""Reads XLA's own text of a buffer assignment: the allocations, the values in them, and when each value is needed.

XLA's ``BufferAssignment::ToString`` and ``HloLiveRange::ToString`` write it: in TensorFlow 2.16 to 2.21 into one file,
from 2.22 on into three files, which are read one after the other.
"""

import re
from collections.abc import Iterable

import msgspec

MOST_VALUES = 500_000
"""The most values of one allocation in a report. ResNet-50's training step has some three thousand values."""


class Unread(ValueError):
    """The text is not in a known form. The argument names the part that was not found or does not add up."""


class PlacedValue(msgspec.Struct, frozen=True):
    """A value in an allocation: the result of instruction ``name``; ``offset`` and ``size`` are in bytes.

    If the result is a tuple, the value is its part ``index``, such as ``{1}``.
    """

    name: str
    index: str
    shape: str
    offset: int
    size: int

    @property
    def key(self) -> str:
        """The value's name among the live ranges."""
        return f"{self.name}{self.index or '{}'}"


class Allocation(msgspec.Struct):
    """An allocation of ``size`` bytes, which XLA takes at once, and the values that lie in it.

    ``temporary`` is one that the cluster needs only while it runs.
    """

    size: int
    temporary: bool
    values: list[PlacedValue] = msgspec.field(default_factory=list)


class Assignment(msgspec.Struct):
    """The content of a buffer assignment; ``total`` is the bytes of all its allocations, as XLA counts them.

    ``ranges`` has the first and the last moment at which a value is needed, by :attr:`PlacedValue.key`. ``schedule`` is
    the number of moments.
    """

    allocations: list[Allocation] = msgspec.field(default_factory=list)
    total: int | None = None
    schedule: int = 0
    ranges: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)


_ALLOCATION = re.compile(
    r"allocation \d+: (?:0x[0-9a-f]+, )?size (\d{1,19})(?:, (?:page|color) \d+)*(?:, (.*?))?:?\s*$"
)
_VALUE = re.compile(
    r" value: <\d+ ([^\s<>{}]+)(\{[\d,]*\})?(?: \(phi\))?(?: @-?\d+)?> \(size=(\d{1,19}),offset=(\d{1,19})\): (.*?)\s*$"
)
_TOTAL = re.compile(r"Total bytes used: (\d{1,19})\b")
_RANGE = re.compile(r"    ([^\s{}]+\{[\d,]*\}):(\d{1,9})-(\d{1,9})\s*$")
_HEADER = re.compile(
    r"HloLiveRange(?: \(max (\d{1,9})\):)?|(?P<ranges>  BufferLiveRange:)|"
    r"  (?:InstructionSequence|Live ranges|Stack)|Used values:"
)
"""The first line of a part of the text. The part with a name here, and the first part, are read."""

_SHAPE = 300  # characters of a shape that are kept: the beginning of a long tuple is enough


def read_assignment(lines: Iterable[str]) -> Assignment:
    """Parse the *lines* of ``*-buffer-assignment.txt``, and of the files beside it.

    Raises:
        Unread: the lines are not such a text, or not all of it.
    """
    found = Assignment()
    part: str | None = "allocations"
    for line in lines:
        if header := _HEADER.match(line):
            part = header.lastgroup
            found.schedule = int(header[1] or found.schedule)
        elif part == "allocations":
            _take_allocation(line, found)
        elif part == "ranges" and (live := _RANGE.match(line)):
            found.ranges[live[1]] = int(live[2]), int(live[3])
    _check(found)
    return found


def _take_allocation(line: str, found: Assignment) -> None:
    if value := _VALUE.match(line):
        if not found.allocations:
            raise Unread("allocation")
        name, index, size, offset, shape = value.groups()
        found.allocations[-1].values.append(PlacedValue(name, index or "", shape[:_SHAPE], int(offset), int(size)))
        if len(found.allocations[-1].values) > MOST_VALUES:
            raise Unread("value")
    elif line.startswith("allocation "):
        allocation = _ALLOCATION.match(line)
        if allocation is None:
            raise Unread("allocation")
        attributes = (allocation[2] or "").split(", ")
        found.allocations.append(Allocation(int(allocation[1]), temporary="preallocated-temp" in attributes))
    elif total := _TOTAL.match(line):
        found.total = int(total[1])


def _check(found: Assignment) -> None:
    """Check that the figures add up. If they do not, the text was read wrongly.

    Raises:
        Unread: the figures do not add up.
    """
    if not found.allocations:
        raise Unread("allocation")
    if found.total is None or found.total != sum(allocation.size for allocation in found.allocations):
        raise Unread("Total bytes used")
    for allocation in found.allocations:
        if any(value.offset + value.size > allocation.size for value in allocation.values):
            raise Unread("value")
    if not found.ranges or not found.schedule:
        raise Unread("BufferLiveRange")
    if any(first > last or last > found.schedule for first, last in found.ranges.values()):
        raise Unread("BufferLiveRange")
