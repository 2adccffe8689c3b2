"""Files that their readers find whole or not at all."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def draft_of(path: str) -> str:
    """A name beside *path* that nobody can know before, and that no pattern such as ``*.json`` takes in."""
    return f"{path}.{os.urandom(4).hex()}"


def can_be_replaced(path: str) -> bool:
    """Whether there is nothing at *path*, or a file. A device such as ``/dev/null`` is nobody's to replace."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
    except FileNotFoundError:
        return True


def replace(path: str, data: bytes, draft: str) -> None:
    """Put a file with *data* at *path*. A link there is replaced, and not followed.

    *draft* is of :func:`draft_of`; nothing is left there.

    Raises:
        OSError: it cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(draft, path)  # noqa: PTH105
    except BaseException:
        remove(draft)
        raise


def remove(path: str) -> None:
    """Remove the file, if it is there."""
    with suppress(OSError):
        Path(path).unlink()


def holds(path: str, data: bytes) -> bool:
    """Whether there is a file at *path* with just this *data*. Waits for nothing, such as a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return stat.S_ISREG(os.fstat(descriptor).st_mode) and file.read(len(data) + 1) == data
    except OSError:
        return False
