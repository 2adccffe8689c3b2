"""A request for memory for which there was no room: who asked for it, and what was there. Pure."""

import re

import msgspec

from tfmemtop.findings.names import named_spot, node_name, operation_name
from tfmemtop.state.anatomy import Anatomy
from tfmemtop.state.inventory import Inventory
from tfmemtop.state.model import Hooked

_VECTORIZED = re.compile(r"\{\{node [^}]*/pfor/")
_VECTORIZING = re.compile(r"(?:\b[\w.]+\.)?(?:batch_jacobian|jacobian|vectorized_map)(?=\()")


class Request(msgspec.Struct, frozen=True):
    """A request for which there was no room, in a pool with that ``stock``; ``asked`` is ``None`` if not known.

    ``phase`` is the script's phase, such as ``evaluate``; empty if none is known.
    """

    anatomy: Anatomy
    stock: Inventory
    hooked: Hooked
    t: float
    phase: str = ""

    @property
    def asked(self) -> int | None:
        return self.anatomy.asked

    @property
    def who(self) -> str:
        """The operation and the line that asked: ``ConcatV2 at train.py:9``."""
        name, line = asked_by(self.anatomy)
        return at_line(name or "The script", line)


def asked_by(a: Anatomy) -> tuple[str, str | None]:
    """Return the operation and the line that asked, those in a graph where they are known."""
    if is_vectorized(a):
        return vectorized_name(a), a.line
    if a.node:
        return node_name(a.node), a.node_line or a.line
    return operation_name(a.operation), a.line


def at_line(name: str, line: str | None) -> str:
    """Return a *name* with the line of the script that belongs to it."""
    return name + (f" at {named_spot(line)}" if line else "")


def is_vectorized(a: Anatomy) -> bool:
    """Return whether a Jacobian, or a map that TensorFlow vectorizes, made the request."""
    return bool(_VECTORIZED.search(a.message))


def vectorized_name(a: Anatomy) -> str:
    """Return what computes the rows of a vectorized request: ``tape.jacobian``, if the script's line has one call."""
    calls = {found[0] for found in _VECTORIZING.finditer(a.code)}
    return calls.pop() if len(calls) == 1 else "a Jacobian or a vectorized map"
