"""The text about an unexpected exception in tfmemtop. Pure."""

from tfmemtop.failure import facts_of
from tfmemtop.words.safe import safe


def describe(error: BaseException) -> str:
    """Return the error's type, its text and its place in tfmemtop, as text that can be shown."""
    return safe(facts_of(error))


UNKNOWN_ERROR = "an unknown error"
"""For the case that Textual has ended the screen and has stored no exception."""


def not_drawn(what: str, error: BaseException) -> str:
    """Return the line about *what*, which raised *error* while it was drawn."""
    return f"{what} cannot be drawn: {describe(error)}"


def part_not_drawn(error: BaseException) -> str:
    """Return the line about a part of the screen that raised *error*. Which part it was is not known."""
    return not_drawn("a part of the screen", error)


def no_summary(error: BaseException) -> str:
    """Return the line that replaces the summary printed after the screen, if making that summary raised *error*."""
    return f"the summary cannot be made: {describe(error)}"
