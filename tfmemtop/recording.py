"""The stream as JSON lines in a file: one event a line, a ``session`` event first.

The writer hands the kernel whole lines only, so a recording is complete up to its last line
however the writer ends. The reader is lazy and forgiving: it keeps one line in memory, skips what
is damaged and counts it, and can read a file that is still being written.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, get_args

import msgspec

from tfmemtop.events import (
    FORMAT,
    AnyEvent,
    Environment,
    Event,
    Initialised,
    Run,
    Session,
    Unreadable,
    decode_event,
    decoder,
    encode,
)
from tfmemtop.settings import names_a_secret

KEPT_VARIABLES = ("TF_", "CUDA_", "XLA_", "NVIDIA_", "NCCL_", "TFMEMTOP_")
"""A recording is made to be passed on: of an environment it keeps only names that begin so, and hold no secret."""

_MODE = 0o600  # command lines and output are nobody else's
_FLUSH_AT = 64 * 1024
_LONGEST_LINE = 16 * 1024 * 1024
_TAGS = {str(kind.__struct_config__.tag) for kind in get_args(AnyEvent)}


class RecordingError(Exception):
    """A recording cannot be written or read; the message is one line fit for the user."""


class Writer:
    """Writes events to a file, a line each.

    A file that is already there is overwritten if it is empty or itself a tfmemtop recording, with
    the first flush, and left alone if it is anything else. A device such as ``/dev/null`` is
    written to.

    Raises:
        RecordingError: the file cannot be written, holds something else, or another tfmemtop is
            writing to it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._written = 0  # bytes of whole lines in the file
        self._stale = False  # the file still holds an older recording
        try:
            # Non-blocking, lest a named pipe without a reader holds up the start for ever.
            self._descriptor = os.open(
                self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, _MODE
            )
        except (OSError, ValueError) as error:
            raise RecordingError(f"cannot record to {self.path}: {_reason(error)}") from error
        try:
            self._take_over()
        except BaseException:
            self._drop()
            raise

    def _take_over(self) -> None:
        mode = os.fstat(self._descriptor).st_mode
        self._regular = stat.S_ISREG(mode)
        if not self._regular:
            if stat.S_ISCHR(mode):
                return
            raise RecordingError(f"cannot record to {self.path}: it is not a regular file")
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # A file system without locks is no reason not to record.
            if error.errno == errno.EWOULDBLOCK:
                raise RecordingError(f"cannot record to {self.path}: another tfmemtop is recording there") from error
        if os.fstat(self._descriptor).st_size:
            with self.path.open("rb") as file:
                if _header(file.readline(_LONGEST_LINE)) is None:
                    raise RecordingError(
                        f"cannot record to {self.path}: the file exists and is no tfmemtop recording; it was left alone"
                    )
            # Only once there is something to put in its place: the run may yet fail to start.
            self._stale = True
        else:
            self._make_private()

    def _make_private(self) -> None:
        """Whatever the umask, and whoever could read what was there before."""
        try:
            os.fchmod(self._descriptor, _MODE)
        except OSError:
            pass  # another user's file, who lets us write to it, or a file system without modes

    @property
    def closed(self) -> bool:
        """Whether the recording has ended, by :meth:`close` or by a failed write."""
        return self._descriptor < 0

    def write(self, event: Event) -> None:
        """Take one event; it is in the file after the next :meth:`flush`. Nothing once closed.

        Raises:
            RecordingError: as :meth:`flush`, which a full buffer sets off.
        """
        if self.closed:
            return
        line = encode(_without_secrets(event)) + b"\n"
        self._buffer.append(line)
        self._buffered += len(line)
        if self._buffered >= _FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        """Hand all lines taken so far to the kernel, in one write.

        Raises:
            RecordingError: once, if the file cannot take them (a full disk). The recording then
                ends at its last whole line, and later events are let go.
        """
        if self.closed or not self._buffer:
            return
        data = memoryview(b"".join(self._buffer))
        self._buffer.clear()
        self._buffered = 0
        done = 0
        try:
            if self._stale:
                self._make_private()
                os.ftruncate(self._descriptor, 0)
                self._stale = False
            while done < len(data):
                done += os.write(self._descriptor, data[done:])
        except OSError as error:
            self._cut(self._written + bytes(data[:done]).rfind(b"\n") + 1)
            self._drop()
            raise RecordingError(f"recording to {self.path} has stopped: {_reason(error)}") from error
        self._written += done

    def close(self) -> None:
        """Flush and let go of the file. Closing twice does nothing.

        Raises:
            RecordingError: as :meth:`flush`.
        """
        try:
            self.flush()
        finally:
            self._drop()

    def _cut(self, size: int) -> None:
        if self._regular:
            try:
                os.ftruncate(self._descriptor, size)
            except OSError:
                pass  # the reader leaves out a last line that is cut short

    def _drop(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass
class Recording:
    """A recording that has been found readable.

    ``damaged`` and ``unknown`` count the lines that the latest pass over :meth:`events` has left
    out so far: those that could not be read, and those of types this tfmemtop does not know.
    ``offset`` is the byte in the file after the event that it gave last.
    """

    path: Path
    session: Session
    damaged: int = 0
    unknown: int = 0
    offset: int = 0

    def events(self, start: int = 0) -> Iterator[AnyEvent]:
        """All events in order, the session first, read as they are asked for; or those from the byte *start* on.

        Raises:
            RecordingError: the file can no longer be read.
        """
        self.damaged = self.unknown = 0
        self.offset = start
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                for line in _lines(file):
                    event = self._event(line)
                    if event is not None:
                        self.offset = file.tell()
                        yield event
        except OSError as error:
            raise RecordingError(f"cannot read {self.path}: {_reason(error)}") from error

    def duration(self) -> float:
        """Seconds from the session's beginning to the last event, found from the file's end.

        Raises:
            RecordingError: the file can no longer be read.
        """
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                span = _FLUSH_AT
                while True:
                    start = file.seek(max(0, size - span))
                    lines = file.read(span).split(b"\n")
                    # The first piece is likely cut; at the file's beginning it is whole.
                    for line in reversed(lines if start == 0 else lines[1:]):
                        event = _decode(line)
                        if event is not None:
                            return event.t
                    if start == 0 or span >= 2 * _LONGEST_LINE:
                        return self.session.t
                    span *= 8
        except OSError as error:
            raise RecordingError(f"cannot read {self.path}: {_reason(error)}") from error

    def _event(self, line: bytes) -> AnyEvent | None:
        if not line.strip():
            return None
        event = _decode(line)
        if event is None and line.endswith(b"\n"):  # else the writer was killed, or still writes
            if _is_unknown(line):
                self.unknown += 1
            else:
                self.damaged += 1
        return event


def left_out(recording: Recording) -> str:
    """What to say of a recording's damaged lines."""
    lines = "line" if recording.damaged == 1 else "lines"
    return f"{recording.path}: {recording.damaged} damaged {lines} left out"


def read(path: str | os.PathLike[str]) -> Recording:
    """Open a recording and read its session; :meth:`Recording.events` reads the rest.

    Raises:
        RecordingError: the file cannot be read, is no recording, or is a newer tfmemtop's.
    """
    path = Path(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise RecordingError(f"{path} is no tfmemtop recording: it is not a regular file")
        with path.open("rb") as file:
            line = file.readline(_LONGEST_LINE)
    except (OSError, ValueError) as error:
        raise RecordingError(f"cannot read {path}: {_reason(error)}") from error
    header = _header(line)
    if header is None:
        raise RecordingError(
            f"{path} is no tfmemtop recording: " + ("it does not begin as one" if line else "it is empty")
        )
    if header.format > FORMAT:
        raise RecordingError(
            f"{path} was written by a newer tfmemtop "
            f"(format {header.format}; this one reads up to {FORMAT}): upgrade tfmemtop"
        )
    session = _decode(line)
    if not isinstance(session, Session):
        raise RecordingError(f"{path}: the first line, which describes the session, is damaged")
    return Recording(path, session)


class _Header(msgspec.Struct):
    """What every format's first line has."""

    type: Literal["session"]
    format: int


class _Typed(msgspec.Struct):
    """What every event of every version has."""

    type: str


_decode_header = decoder(_Header)
_decode_typed = decoder(_Typed)


def _header(line: bytes) -> _Header | None:
    try:
        return _decode_header(line)
    except Unreadable:
        return None


def _decode(line: bytes) -> AnyEvent | None:
    try:
        return decode_event(line)
    except Unreadable:
        return None


def _is_unknown(line: bytes) -> bool:
    try:
        return _decode_typed(line).type not in _TAGS
    except Unreadable:
        return False


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines with their newline; one longer than any event becomes a short one that does not decode."""
    while line := file.readline(_LONGEST_LINE):
        if len(line) < _LONGEST_LINE or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(_LONGEST_LINE)
        yield b"?\n"


def _without_secrets(event: Event) -> Event:
    if isinstance(event, Environment | Initialised):
        return msgspec.structs.replace(event, variables=_kept(event.variables))
    if isinstance(event, Run) and event.settings.environment:
        settings = msgspec.structs.replace(event.settings, environment=_kept(event.settings.environment))
        return msgspec.structs.replace(event, settings=settings)
    return event


def _kept(variables: dict[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in variables.items() if name.startswith(KEPT_VARIABLES) and not names_a_secret(name)
    }


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
