"""All that the command line prints: safe, line by line, and with a plain error where nothing can be printed.

stdout is for what was asked for (:func:`tell`), stderr for what is said beside it (:func:`say`, :func:`note`).
"""

import errno
import os
import sys
from collections.abc import Iterable

from tfmemtop.charset import json_ascii
from tfmemtop.safe import safe


def open_all_three() -> None:
    """Let no file of ours take the number of a standard stream that is closed: what is printed would go into it.

    The programs that are started find it closed, as they would have without us.
    """
    for descriptor in (0, 1, 2):
        if not _is_open(descriptor):
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def tell(lines: Iterable[str]) -> None:
    """Print *lines* on stdout.

    Raises:
        OSError: they cannot be written.
    """
    _print("\n".join(map(safe, lines)))


def tell_coloured(lines: Iterable[str]) -> None:
    """Print *lines* on stdout with the colours that are in them; all else in them has passed through ``safe``.

    Raises:
        OSError: they cannot be written.
    """
    _print("\n".join(lines))


def tell_json(encoded: bytes) -> None:
    """Print JSON on stdout, one line or several; what is not ASCII is escaped in it, and so steers no terminal.

    Raises:
        OSError: it cannot be written.
    """
    _print(json_ascii(encoded.decode()))


def _print(text: str) -> None:
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise  # who read us has enough
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error


def say(text: str) -> None:
    """Print one line on stderr, as tfmemtop's."""
    note(f"tfmemtop: {text}")


def note(text: str, end: str = "\n") -> None:
    """Print *text* on stderr; where that takes nothing, there is nobody to tell."""
    if sys.stderr is None:
        return
    try:
        print(safe(text), end=end, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        _let_go(2)


def let_go_of_stdout() -> None:
    """What cannot be written the interpreter would try again at its end, and complain."""
    _let_go(1)


def _let_go(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
