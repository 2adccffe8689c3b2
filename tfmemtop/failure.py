"""An unexpected exception in tfmemtop as one line of facts: its type, its text and its place in the program. Pure."""

import traceback
from pathlib import PurePath

_LONGEST = 300  # characters of an error's own text


def facts_of(error: BaseException) -> str:
    """Return the error's type, its text and where in tfmemtop it was raised: ``KeyError: 3 (state/fold.py:90)``.

    The text is as the error has it, without line breaks: it must pass ``words/safe.py`` before it is shown.
    """
    text = " ".join(str(error).splitlines())
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "…"
    name = type(error).__name__
    return (f"{name}: {text}" if text else name) + _place(error)


def _place(error: BaseException) -> str:
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        parts = PurePath(frame.filename).parts
        if "tfmemtop" in parts:
            inside = parts[len(parts) - parts[::-1].index("tfmemtop") :]
            return f" ({'/'.join(inside)}:{frame.lineno})"
    return ""
