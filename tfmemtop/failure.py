"""An exception as one line. Of an unexpected one: its type, its text and its place in tfmemtop. Pure."""

import traceback
from pathlib import Path

from tfmemtop.safe import safe

_FOLDER = f"{Path(__file__).parent}/"
_LONGEST = 300  # characters of an error's own text


class Refusal(Exception):
    """What was requested cannot be done.

    The message is one line for the user, not made safe yet: a command prints it to stderr after ``tfmemtop:``, and ends
    with ``exit_code``.
    """

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def facts_of(error: BaseException) -> str:
    """Return the error's type, its text and where in tfmemtop it was raised: ``KeyError: 3 (state/fold.py:90)``.

    The text is as the error has it, without line breaks: it must pass ``safe.py`` before it is shown.
    """
    text = " ".join(str(error).splitlines())
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "…"
    name = type(error).__name__
    return (f"{name}: {text}" if text else name) + _place(error)


def _place(error: BaseException) -> str:
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(_FOLDER):
            return f" ({frame.filename.removeprefix(_FOLDER)}:{frame.lineno})"
    return ""


def reason(error: Exception) -> str:
    """Return the text of an error that was foreseen; of the system's, its message after the name of the file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


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
