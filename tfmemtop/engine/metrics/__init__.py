"""Exports a session to Prometheus: makes samples from the state, serves them as a page, and writes them to a file.

Here are the labels of all samples, and the file in which Prometheus finds the address of a session's page (file_sd).
"""

import errno
import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tfmemtop.engine.process.launch import StartError
from tfmemtop.events import Session

_EVERYWHERE = ("0.0.0.0", "::")
_MODE = 0o644  # whatever the umask: Prometheus runs as another user


def publish(path: str, data: bytes) -> None:
    """Replace the file *path* by one with *data* that all users may read. A symbolic link is replaced, not followed.

    It is written as a draft first, so that Prometheus never finds a part of it.

    Raises:
        StartError: there is something other than a file, such as a device, or the file cannot be written.
    """
    draft = Path(f"{path}.{os.urandom(4).hex()}")  # no pattern such as *.json matches it
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, "")
        if Path(path).exists() and not Path(path).is_file():
            raise StartError(f"no metrics in {path}: it is not a regular file")
        with draft.open("xb") as file:
            with suppress(OSError):  # not every file system has modes
                os.fchmod(file.fileno(), _MODE)
            file.write(data)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise refused(f"in {path}", error) from None


def withdraw(path: str, data: bytes) -> None:
    """Remove the file *path* if it still contains exactly *data*, so that a file of another session stays.

    Raises:
        OSError: the file cannot be read or removed.
    """
    file = Path(path)
    if file.is_file() and not file.is_symlink() and file.read_bytes() == data:
        file.unlink(missing_ok=True)


def refused(place: str, error: OSError) -> StartError:
    """Return the error of a start that fails because the metrics cannot be had at *place*, such as ``in m.json``."""
    # Python adds its own words to some of the system's messages, so the message is taken from the system.
    known = error.errno is not None and error.errno in errno.errorcode
    said = os.strerror(error.errno or 0) if known else error.strerror or str(error)
    return StartError(f"no metrics {place}: {said.lower()}")


def entry(listener: socket.socket, host: str, labels: Mapping[str, str]) -> bytes:
    """Return the content of the file for Prometheus: the address of the page on *host*, and the target's *labels*.

    Prometheus has these labels even while the page does not answer.
    """
    address, port = listener.getsockname()[:2]
    if address in _EVERYWHERE:
        address = host
    elif ":" in address:
        address = f"[{address}]"
    given = {name: value for name, value in labels.items() if value}
    return json.dumps([{"targets": [f"{address}:{port}"], "labels": given}]).encode()


def session_labels(session: Session | None) -> dict[str, str]:
    """Return the labels that all samples of a session have. Job and rank are empty if the session has none."""
    place = session.placement if session else None
    rank = "" if place is None or place.rank is None else str(place.rank)
    host = (place.host if place else "") or (session.host if session else "")
    return {"host": host, "job": (place.job if place else None) or "", "rank": rank}
