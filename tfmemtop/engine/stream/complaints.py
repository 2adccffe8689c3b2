"""Writes the engine's unforeseen errors to its stderr, or to the log of its session.

If the engine has a process of its own, the stderr of that process goes to the log. In a screen's process, stderr is the
user's terminal, on which the screen is drawn. So errors are written to the log directly, and stderr is redirected to
the log too, because libraries in C write to it.
"""

import os
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path

from tfmemtop.units import MIB

_LONGEST = MIB  # bytes of a log, to which then nothing more is added: it may be in memory

_log: Path | None = None


def write_to(log: Path | None) -> None:
    """From now on, write to the end of the file *log*; with ``None``, to stderr."""
    global _log
    _log = log


def complain(about: str = "", error: BaseException | None = None) -> None:
    """Write *about* and the traceback of *error*. The default is the exception that is being handled, if any."""
    error = error or sys.exc_info()[1]
    with suppress(OSError):  # there is no log yet
        if (os.fstat(2) if _log is None else _log.stat()).st_size > _LONGEST:
            return
    text = about + ("".join(traceback.format_exception(error)) if error is not None else "")
    if _log is None:
        sys.stderr.write(text)
        return
    try:
        with _log.open("a") as file:
            file.write(text)
    except OSError:
        return  # there is no room for it, or the session's folder was removed


class Stderr:
    """The target of stderr's descriptor. The C library and drivers write to that descriptor too."""

    def __init__(self) -> None:
        self._terminal: int | None = None
        self._given_back = False
        self._lock = threading.Lock()  # lead_to() is called in the engine's thread

    def lead_to(self, log: Path) -> None:
        """Redirect stderr, if it is a terminal, to the end of the file *log* until :meth:`give_back`."""
        with self._lock:
            if self._given_back or self._terminal is not None or not os.isatty(2):
                return
            try:
                file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError:
                return  # there is no room for a file
            try:
                self._terminal = os.dup(2)
                os.dup2(file, 2)
            except OSError:
                return  # there are no more descriptors
            finally:
                os.close(file)

    def give_back(self) -> None:
        """Redirect stderr to the terminal again, for good."""
        with self._lock:
            self._given_back = True
            if self._terminal is not None:
                os.dup2(self._terminal, 2)
                os.close(self._terminal)
                self._terminal = None
