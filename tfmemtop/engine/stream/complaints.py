"""Where the engine writes what went wrong unforeseen: on its stderr, or to the log of its session.

The engine's own process has its stderr lead to the log. Within the screen's process stderr is the user's terminal, on
which the screen is drawn, so the log is written to instead.
"""

import sys
import traceback
from pathlib import Path

_log: Path | None = None


def write_to(log: Path | None) -> None:
    """From now on write to the end of the file *log*; ``None``: on stderr."""
    global _log
    _log = log


def complain(about: str = "", error: BaseException | None = None) -> None:
    """Write *about*, and the traceback of *error*, by default of the exception that is being handled if one is."""
    error = error or sys.exc_info()[1]
    text = about + ("".join(traceback.format_exception(error)) if error is not None else "")
    if _log is None:
        sys.stderr.write(text)
        return
    try:
        with _log.open("a") as file:
            file.write(text)
    except OSError:
        return  # there is no room for it, or the session's folder has gone
