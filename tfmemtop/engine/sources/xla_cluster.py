"""Computes what lies in the temporary buffer of a cluster over its schedule, from XLA's own texts.

XLA's text of a module also says of which operation, and of which line of the script, an instruction is.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tfmemtop.engine.sources.xla_assignment import Allocation, Assignment, PlacedValue, Unread, read_assignment
from tfmemtop.events import XlaCluster, XlaValue

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
