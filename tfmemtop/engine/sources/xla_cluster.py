"""Computes what lies in the temporary buffer of a cluster over its schedule, from XLA's own texts.

XLA's ``BufferAssignment::ToString`` and ``HloLiveRange::ToString`` write the allocations, the values in them, and when
each value is needed: in TensorFlow 2.16 to 2.21 into one file, from 2.22 on into three files, which are read one after
the other.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tfmemtop.events import XlaCluster, XlaValue

MOST_VALUES = 500_000
"""The most values of one allocation in a report. ResNet-50's training step has some three thousand values."""


class Unread(ValueError):
    """The text is not in a known form. The argument names the part that was not found or does not add up."""


class Purpose(Enum):
    """What an allocation is for."""

    TEMPORARY = "preallocated-temp"
    PARAMETER = "parameter"
    CONSTANT = "constant"
    OUTPUT = "maybe-live-out"
    THREAD = "thread-local"  # numbers within a loop, on the stack of a thread
    OTHER = ""


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
    """An allocation of ``size`` bytes, which XLA takes at once, and the values that lie in it."""

    size: int
    purpose: Purpose
    values: list[PlacedValue] = msgspec.field(default_factory=list)


class Assignment(msgspec.Struct):
    """The content of a buffer assignment; ``total`` is the bytes of all its allocations, as XLA counts them.

    ``ranges`` has the first and the last moment at which a value is needed, by :attr:`PlacedValue.key`. ``schedule`` is
    the number of moments. ``at_peak`` has bytes by the values' keys, at the moment at which XLA itself counts the most
    bytes; ``None`` if the text does not have this list.
    """

    allocations: list[Allocation] = msgspec.field(default_factory=list)
    total: int | None = None
    schedule: int = 0
    ranges: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    at_peak: dict[str, int] | None = None


_ALLOCATION = re.compile(
    r"allocation \d+: (?:0x[0-9a-f]+, )?size (\d{1,19})(?:, (?:page|color) \d+)*(?:, (.*?))?:?\s*$"
)
_VALUE = re.compile(
    r" value: <\d+ ([^\s<>{}]+)(\{[\d,]*\})?(?: \(phi\))?(?: @-?\d+)?> \(size=(\d{1,19}),offset=(\d{1,19})\): (.*?)\s*$"
)
_TOTAL = re.compile(r"Total bytes used: (\d{1,19})\b")
_RANGE = re.compile(r"HloLiveRange \(max (\d{1,9})\):")
_RANGE = re.compile(r"    ([^\s{}]+\{[\d,]*\}):(\d{1,9})-(\d{1,9})\s*$")
_HEADER = re.compile(
    r"HloLiveRange(?: \(max (\d{1,9})\):)?|(?P<ranges>  BufferLiveRange:)|(?P<peak>  Live ranges at \d+ \(peak\):)|"
    r"  (?:BufferLiveRange|InstructionSequence|Live ranges|Stack)|Used values:"
)
"""The first line of a part of the text. The parts with a name here, and the first part, are read."""
_AT_PEAK = re.compile(r"    ([^\s{}]+\{[\d,]*\}): (\d{1,19}) bytes \(cumulative: (\d{1,19}) bytes\)")

_SHAPE = 300  # characters of a shape that are kept: the beginning of a long tuple is enough


def read_assignment(lines: Iterable[str]) -> Assignment:
    """Parse the *lines* of ``*-buffer-assignment.txt``, and of the files beside it.

    Raises:
        Unread: the lines are not such a text, or not all of it.
    """
    found = Assignment()
    part: str | None = "allocations"
    cumulative = 0  # bytes of the list at the peak
    for line in lines:
        if header := _HEADER.match(line):
            part = header.lastgroup
            found.schedule = int(header[1] or found.schedule)
            if part == "peak":
                found.at_peak, cumulative = {}, 0
        elif part == "allocations":
            _take_allocation(line, found)
        elif part == "ranges" and (live := _RANGE.match(line)):
            found.ranges[live[1]] = int(live[2]), int(live[3])
        elif part == "peak" and found.at_peak is not None and (one := _AT_PEAK.match(line)):
            found.at_peak[one[1]] = int(one[2])
            cumulative += int(one[2])
            if cumulative != int(one[3]):
                raise Unread("Live ranges")
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
        found.allocations.append(Allocation(int(allocation[1]), _purpose(allocation[2] or "")))
    elif total := _TOTAL.match(line):
        found.total = int(total[1])


def _purpose(attributes: str) -> Purpose:
    words = attributes.split(", ")
    # A parameter that is also an output is the caller's: it counts as a parameter.
    for purpose in (Purpose.TEMPORARY, Purpose.THREAD, Purpose.CONSTANT, Purpose.OUTPUT):
        if purpose.value in words and not attributes.startswith(Purpose.PARAMETER.value):
            return purpose
    if attributes.startswith(Purpose.PARAMETER.value):
        return Purpose.PARAMETER
    return Purpose.OUTPUT if attributes.startswith("output") else Purpose.OTHER


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


MOST_INSTRUCTIONS = 1_000_000
_DEPTH = 8  # steps, at most, from a copy to the operation whose value it copies
_VISITED = 64

_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = ")
_COMPUTATION = re.compile(r"(?:ENTRY )?%?([\w.\-]+) .*\{\s*$")
_OPCODE = re.compile(r"\s[a-z][a-z0-9\-]*\(")
_CALLS = re.compile(r"\bcalls=%?([\w.\-]+)")
_NAMED = re.compile(r"%?([A-Za-z_][\w.\-]*)(?=\s*(?:,|$))")
_OPERATION = re.compile(r'\bop_name="((?:[^"\\]|\\.)*)"')
_FILE = re.compile(r'\bsource_file="((?:[^"\\]|\\.)*)"(?: source_line=(\d{1,9})\b)?')

_NOBODYS = ("XLA_Args", "XLA_Retvals", "")
"""Names that XLA's bridge gives to arguments and results."""
_LIBRARIES = ("/site-packages/", "/dist-packages/", "dummy_file_name")
"""Parts of the names of files that are not the script's."""


class OpOrigin(NamedTuple):
    """An operation of TensorFlow, and where the script makes it. Fields that are not known are empty, or 0."""

    operation: str = ""
    file: str = ""
    line: int = 0


_UNKNOWN = OpOrigin()


class Origins:
    """The origins of the instructions of one module."""

    def __init__(self, lines: Iterable[str]) -> None:
        """*lines* are XLA's text of the module after its optimizations. Parts that cannot be parsed are left out."""
        self._own: dict[str, OpOrigin] = {}
        self._operands: dict[str, tuple[str, ...]] = {}
        self._users: dict[str, list[str]] = {}
        self._calls: dict[str, str] = {}
        self._of_computation: dict[str, OpOrigin] = {}
        self._known: dict[str, OpOrigin] = {}
        self._texts: dict[str, str] = {}
        computation = ""
        for line in lines:
            if instruction := _INSTRUCTION.match(line):
                if len(self._operands) < MOST_INSTRUCTIONS:
                    self._take(computation, instruction[2], line[instruction.end() - 1 :], root=bool(instruction[1]))
            elif header := _COMPUTATION.match(line):
                computation = header[1]
        self._texts.clear()

    def of(self, name: str) -> OpOrigin:
        """Return the origin of instruction *name*; empty if it is not known."""
        if name not in self._known:
            self._known[name] = self._search(name)
        return self._known[name]

    def _take(self, computation: str, name: str, text: str, *, root: bool) -> None:
        opening = _OPCODE.search(text)
        if opening is None:
            return
        operands = _between(text, opening.end())
        self._operands[name] = tuple(self._one(operand) for operand in _NAMED.findall(operands)[:_VISITED])
        for operand in self._operands[name]:
            users = self._users.setdefault(operand, [])
            if len(users) < _VISITED:
                users.append(name)
        if calls := _CALLS.search(text):
            self._calls[name] = calls[1]
        operation = _OPERATION.search(text)
        if operation is None or operation[1] in _NOBODYS:
            return
        self._own[name] = origin = self._origin(operation[1], text)
        if root or computation not in self._of_computation:
            self._of_computation[computation] = origin

    def _origin(self, operation: str, text: str) -> OpOrigin:
        place = _FILE.search(text)
        file, line = (place[1], int(place[2] or 0)) if place else ("", 0)
        if any(part in file for part in _LIBRARIES):
            file, line = "", 0
        return OpOrigin(self._one(operation), self._one(file), min(line, 2**31 - 1))

    def _one(self, text: str) -> str:
        """Return the one stored copy of *text*, so that equal texts share their memory."""
        return self._texts.setdefault(text, text)

    def _search(self, name: str) -> OpOrigin:
        return self._nearest(name, self._operands) or self._nearest(name, self._users) or _UNKNOWN

    def _nearest(self, name: str, ways: "dict[str, tuple[str, ...]] | dict[str, list[str]]") -> OpOrigin | None:
        """Return the origin of the nearest instruction along *ways* that has one."""
        seen, here = {name}, [name]
        for _ in range(_DEPTH):
            for each in here:
                if origin := self._own.get(each) or self._of_computation.get(self._calls.get(each, "")):
                    return origin
            following = dict.fromkeys(other for each in here for other in ways.get(each, ()) if other not in seen)
            here = list(following)[: _VISITED - len(seen)]
            if not here:
                return None
            seen.update(here)
        return None


def _between(text: str, begin: int) -> str:
    """Return the part of *text* from *begin* to the parenthesis that closes it."""
    depth = 1
    for found in re.finditer(r"[()]", text[begin:]):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return text[begin : begin + found.start()]
    return text[begin:]


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
        unshared=sum(one.value.size for one in living),
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
