"""The file in which Prometheus finds the address of a session's page (file_sd), and the labels of all samples."""

import errno
import json
import os
import socket
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tfmemtop.events import Session
from tfmemtop.events.unstarted import StartError, Unstarted, Why

_EVERYWHERE = ("0.0.0.0", "::")
_MODE = 0o644  # whatever the umask: Prometheus runs as another user


class SharedFile:
    """A file for programs of other users. It is written to a draft first, so that they never find a part of it."""

    def __init__(self, path: str) -> None:
        self.path = path
        # The draft's name cannot be guessed, and no pattern such as *.json matches it.
        self._draft = f"{path}.{os.urandom(4).hex()}"

    def check(self) -> None:
        """Check that the file is a regular one or missing, and that a draft can be written beside it.

        Raises:
            StartError: there is something other than a file, or no file can be written in the folder.
        """
        try:
            if Path(self.path).is_dir():
                raise IsADirectoryError(errno.EISDIR, "")
            if Path(self.path).exists() and not stat.S_ISREG(os.stat(self.path).st_mode):  # noqa: PTH116
                raise StartError(Unstarted(Why.METRICS_NO_FILE, self.path))  # a device such as /dev/null
            self._write_draft(b"")
            self._remove_draft()
        except OSError as error:
            raise refused(Why.METRICS_FILE, self.path, error) from None

    def write(self, data: bytes) -> None:
        """Replace the file by one with *data*. A symbolic link there is replaced, not followed.

        Raises:
            OSError: the file cannot be written.
        """
        try:
            self._write_draft(data)
            os.replace(self._draft, self.path)  # noqa: PTH105
        except BaseException:
            self._remove_draft()
            raise

    def withdraw(self, data: bytes) -> None:
        """Remove the file if it still contains exactly *data*, so that a file of another session stays.

        Raises:
            OSError: the file cannot be removed.
        """
        if self._holds(data):
            Path(self.path).unlink(missing_ok=True)

    def _write_draft(self, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(self._draft, flags, _MODE), "wb") as file:
            with suppress(OSError):  # not every file system has modes
                os.fchmod(file.fileno(), _MODE)
            file.write(data)

    def _remove_draft(self) -> None:
        with suppress(OSError):
            Path(self._draft).unlink()

    def _holds(self, data: bytes) -> bool:
        try:
            # Non-blocking: somebody may have put a pipe there.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                return stat.S_ISREG(os.fstat(descriptor).st_mode) and file.read(len(data) + 1) == data
        except OSError:
            return False


def refused(why: Why, name: str, error: OSError) -> StartError:
    """Return the error of a start that fails because *name*, an address or a file, cannot be used."""
    # Python adds its own words to some of the system's messages, so the message is taken from the system.
    known = error.errno is not None and error.errno in errno.errorcode
    said = os.strerror(error.errno or 0) if known else error.strerror or str(error)
    return StartError(Unstarted(why, name, said.lower()))


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
