"""The files of the exporter: written so that a reader finds them complete or not at all.

One is for node_exporter. In the other, Prometheus finds the address of a session's page (file_sd).
"""

import json
import os
import socket
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tfmemtop.events import Session

_EVERYWHERE = ("0.0.0.0", "::")
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


def entry(listener: socket.socket, host: str, labels: Mapping[str, str]) -> str:
    """Return the text of the file: the address of the page on *host*, and the *labels* of the target.

    Prometheus has these labels even while the page does not answer.
    """
    address, port = listener.getsockname()[:2]
    if address in _EVERYWHERE:
        address = host
    elif ":" in address:
        address = f"[{address}]"
    return json.dumps(
        [{"targets": [f"{address}:{port}"], "labels": {name: value for name, value in labels.items() if value}}]
    )


def publish(path: str, text: str, draft: str) -> None:
    """Write the file *path*, completely or not at all. The text is first written to *draft*.

    Raises:
        OSError: the file cannot be written.
    """
    replace(path, text.encode(), draft)


def withdraw(path: str, text: str) -> None:
    """Remove the file *path* if it still contains *text*, so that a file of another session stays.

    Raises:
        OSError: the file cannot be removed.
    """
    if holds(path, text.encode()):
        Path(path).unlink(missing_ok=True)


def session_labels(session: Session | None) -> dict[str, str]:
    """Return the labels that all samples of a session have. Job and rank are empty if the session has none."""
    place = session.placement if session else None
    rank = "" if place is None or place.rank is None else str(place.rank)
    host = (place.host if place else "") or (session.host if session else "")
    return {"host": host, "job": (place.job if place else None) or "", "rank": rank}
