"""Lines of the script, as findings name them."""

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
    """Where the script made the *call*."""
    return Callsite(call.file, call.line)


def devices_made_at(hooked: Hooked) -> Callsite | None:
    """The line that had TensorFlow make its devices.

    ``None`` where that is not known: in a process that was forked after they were made, and in older recordings.
    """
    made = hooked.initialised
    if made is None or made.error or not made.file:
        return None
    return Callsite(made.file, made.line, made.code)
