"""The value by which findings name a line of the script."""

from dataclasses import dataclass

from tfmemtop import events
from tfmemtop.state.model import Hooked


@dataclass(frozen=True, slots=True)
class Callsite:
    """A line of the script; ``file`` is empty where it is not known. ``code`` is the text of the line, if known."""

    file: str
    line: int
    code: str = ""


def callsite(call: events.Requested) -> Callsite:
    """Return the line at which the script made the *call*."""
    return Callsite(call.file, call.line)


def devices_made_at(hooked: Hooked) -> Callsite | None:
    """Return the line of the script at which TensorFlow made its devices.

    ``None`` where that is not known: in a process that was forked after they were made, and where making them raised
    an error.
    """
    made = hooked.initialised
    if made is None or made.error or not made.file:
        return None
    return Callsite(made.file, made.line, made.code)
