"""Finds of which operation, and of which line of the script, an instruction is, by XLA's text of its module."""

import re
from collections.abc import Iterable
from typing import NamedTuple

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
