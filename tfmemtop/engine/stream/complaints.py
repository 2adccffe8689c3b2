"""Writes the engine's unforeseen errors to its stderr, or to the log of its session.

If the engine has a process of its own, the stderr of that process goes to the log. In a screen's process, stderr is the
user's terminal, on which the screen is drawn. So errors are written to the log directly, and stderr is redirected to
the log too, because libraries in C write to it.
"""

import asyncio
import os
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path

from tfmemtop.units import MIB

LONGEST = MIB
"""Bytes above which :func:`shorten` shortens a log."""

_PACE_S = 60.0

_log: Path | None = None


def write_to(log: Path | None) -> None:
    """From now on, write to the end of the file *log*; with ``None``, to stderr."""
    global _log
    _log = log


def complain(about: str = "", error: BaseException | None = None) -> None:
    """Write *about* and the traceback of *error*. The default is the exception that is being handled, if any."""
    error = error or sys.exc_info()[1]
    text = about + ("".join(traceback.format_exception(error)) if error is not None else "")
    if _log is None:
        sys.stderr.write(text)
        return
    try:
        with _log.open("a") as file:
            file.write(text)
    except OSError:
        return  # there is no room for it, or the session's folder was removed


async def keep_short(log: Path) -> None:
    """Shorten the file *log* once a minute, for ever."""
    while True:
        shorten(log)
        await asyncio.sleep(_PACE_S)


def shorten(log: Path) -> None:
    """Remove the middle of the file *log* if it is longer than :data:`LONGEST`. A quarter of that stays at each end.

    A driver may write a line at each reading, for days. The log is in the session's folder, which may be in memory.
    """
    with suppress(OSError), log.open("r+b") as file:  # OSError: there is no log, or no room
        size = file.seek(0, os.SEEK_END)
        if size > LONGEST:
            file.seek(size - LONGEST // 4)
            end = file.read()
            file.seek(LONGEST // 4)
            file.write(b"\n[...]\n" + end)
            file.truncate()


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
