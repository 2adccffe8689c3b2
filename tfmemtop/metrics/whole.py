"""Writes files so that a reader finds them complete or not at all."""

import os
import stat
from contextlib import suppress
from pathlib import Path

_MODE = 0o644  # whatever the umask: Prometheus and node_exporter run as other users


def draft_of(path: str) -> str:
    """Return a name for a draft beside *path*. It cannot be guessed, and no pattern such as ``*.json`` matches it."""
    return f"{path}.{os.urandom(4).hex()}"


def can_be_replaced(path: str) -> bool:
    """Return whether *path* is a regular file, or nothing. A device such as ``/dev/null`` must not be replaced.

    Raises:
        OSError: *path* cannot be examined.
    """
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
    except FileNotFoundError:
        return True


def replace(path: str, data: bytes, draft: str) -> None:
    """Put a file with *data* at *path*, which all users can read. A symbolic link there is replaced, not followed.

    *draft* is a name from :func:`draft_of`. No file of that name is left.

    Raises:
        OSError: the file cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, _MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with suppress(OSError):  # not every file system has modes
                os.fchmod(descriptor, _MODE)
            file.write(data)
        os.replace(draft, path)  # noqa: PTH105
    except BaseException:
        remove(draft)
        raise


def remove(path: str) -> None:
    """Remove the file; do nothing if that is not possible."""
    with suppress(OSError):
        Path(path).unlink()


def holds(path: str, data: bytes) -> bool:
    """Return whether *path* is a file that contains exactly *data*. It does not wait if *path* is a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return stat.S_ISREG(os.fstat(descriptor).st_mode) and file.read(len(data) + 1) == data
    except OSError:
        return False
