"""Prints everything that the command line prints.

The result of a command goes to stdout (:func:`tell`), messages go to stderr (:func:`say`, :func:`note`). All text is
made safe for a terminal. If stdout cannot be written to, the user gets an error of one line.
"""

import errno
import os
import sys
from collections.abc import Iterable

from tfmemtop.charset import json_ascii
from tfmemtop.safe import safe

_STDOUT = "standard output"


def open_standard_streams() -> None:
    """Open each standard stream that is closed, as the null device.

    Otherwise a file of ours would get the stream's number, and printed text would go into that file. The programs that
    are started still find the stream closed, as they would without tfmemtop.
    """
    for descriptor in (0, 1, 2):
        if not _is_open(descriptor):
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is `descriptor`


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def print_lines(lines: Iterable[str]) -> None:
    """Print *lines* on stdout.

    Raises:
        OSError: stdout cannot be written to.
    """
    _print("\n".join(map(safe, lines)))


def takes_colours() -> bool:
    """Return whether stdout is a terminal that shows colours, and the user wants them."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return not plain and sys.stdout is not None and sys.stdout.isatty()


def print_coloured(lines: Iterable[str]) -> None:
    """Print *lines* on stdout with the escape sequences in them. The caller must have made the rest of them safe.

    Raises:
        OSError: stdout cannot be written to.
    """
    _print("\n".join(lines))


def print_json(value: object) -> None:
    """Print *value* as indented JSON on stdout.

    Raises:
        OSError: stdout cannot be written to.
    """
    from msgspec import json  # imported only here, because not every command prints JSON

    print_encoded(json.format(json.encode(value)))


def print_encoded(encoded: bytes) -> None:
    """Print JSON on stdout. Every character beyond ASCII is escaped, so that no text in it controls the terminal.

    Raises:
        OSError: stdout cannot be written to.
    """
    _print(json_ascii(encoded.decode()))


def _print(text: str) -> None:
    if sys.stdout is None:
        raise OSError(errno.EBADF, f"{_STDOUT} is closed")
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise  # the reader has closed the pipe
    except OSError as error:
        raise OSError(error.errno, error.strerror, _STDOUT) from error


def say(text: str) -> None:
    """Print one line on stderr, after ``tfmemtop:``."""
    note(f"tfmemtop: {text}")


def note(text: str, end: str = "\n") -> None:
    """Print *text* on stderr. If stderr cannot be written to, nothing is printed."""
    if sys.stderr is None:
        return
    try:
        print(safe(text), end=end, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        _let_go(2)


def say_trouble(trouble: str) -> None:
    """Print a line on stderr if the screen has failed; *trouble* is the reason, empty if it has not."""
    if trouble:
        say(f"the screen has failed: {trouble}")


def discard_stdout() -> None:
    """Send the rest of stdout to the null device. Otherwise the interpreter would write it at its end, and fail."""
    _let_go(1)


def _let_go(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
