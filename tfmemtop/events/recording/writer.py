"""Writes recordings. Only whole lines are passed to the system, so a recording is complete up to its last line."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from tfmemtop.events import Event, encode
from tfmemtop.events.recording.chunks import Packer
from tfmemtop.events.recording.lines import (
    LONGEST_LINE,
    OUTLINE,
    SO_FAR,
    Elsewhere,
    header_of,
    reason_of,
    repeat,
    stopped,
    unwritable,
)
from tfmemtop.events.recording.outline import Outline
from tfmemtop.events.recording.reader import first_line
from tfmemtop.units import MIB

_MODE = 0o600  # only this user may read the command lines and output
_FLUSH_AT = 64 * 1024
_PLAIN_FLUSH_S, _PACKED_FLUSH_S = 0.2, 1.0
PLAIN = ".jsonl"
"""The ending of the name of a file that is not compressed."""

CHUNK = 8 * MIB
"""Bytes of text after which a compressed recording begins a new chunk: ten minutes of one script on one GPU."""

_SHARE = 4
"""A chunk is at least this many times as long as the lines that it begins with."""

_LONGEST_OUTLINE = CHUNK / _SHARE
"""Bytes. If an outline would be longer, as that of much output, there is none, and its events are not kept for it."""


class Writer:
    """Writes events to a file, one in each line. It is compressed unless the file's name ends in :data:`PLAIN`.

    A compressed recording is written in chunks. Once a chunk is ``full``, call :meth:`begin_chunk`.

    An existing file is overwritten, with the first flush, if it is empty or a tfmemtop recording. Any other file is not
    changed. A device such as ``/dev/null`` is written to.

    Raises:
        RecordingError: the file cannot be written, contains something else, or another tfmemtop is writing to it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._packer = None if self.path.name.endswith(PLAIN) else Packer()
        self.flush_s = _PLAIN_FLUSH_S if self._packer is None else _PACKED_FLUSH_S
        """Seconds between two flushes. More frequent flushes would make the compression worse."""
        self._t = 0.0  # time of the newest event
        self._chunk = CHUNK  # bytes of text until the next chunk
        self._outline = Outline()
        self._outlined: list[Event] = []  # outline of the present chunk so far
        self._unthinned = 0  # bytes of the present chunk that its outline would repeat, such as output
        self._once: dict[float, int] = {}  # times of events with ``once``, and the chunk that contains them
        self._chunk_at = 0  # where in the file the present chunk begins
        self._buffer: list[bytes] = []
        self._buffered = 0
        self.size = 0
        """The bytes of whole lines in the file."""
        self._stale = False  # the file still holds an older recording
        try:
            # Non-blocking: a named pipe without a reader would otherwise block the start for ever.
            self._descriptor = os.open(
                self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, _MODE
            )
        except (OSError, ValueError) as error:
            raise unwritable(self.path, reason_of(error)) from error
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
            raise unwritable(self.path, "it is not a regular file")
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # On a file system without locks, record without a lock.
            if error.errno == errno.EWOULDBLOCK:
                raise unwritable(self.path, "another tfmemtop is recording there") from error
        if os.fstat(self._descriptor).st_size:
            with self.path.open("rb") as file:
                if header_of(first_line(file)) is None:
                    why = "the file exists and is no tfmemtop recording; it was left alone"
                    raise unwritable(self.path, why)
            # Overwritten only with the first flush, since the run may still fail to start.
            self._stale = True
        else:
            self._make_private()

    def _make_private(self) -> None:
        """Let only this user read the file, whatever the umask, and even if others could read the older file."""
        try:
            os.fchmod(self._descriptor, _MODE)
        except OSError:
            pass  # the file of another user who lets us write to it, or a file system without modes

    @property
    def closed(self) -> bool:
        """Whether the recording has ended, by :meth:`close` or by a failed write."""
        return self._descriptor < 0

    @property
    def full(self) -> bool:
        """Whether it is time for the next chunk."""
        return self._packer is not None and (self._packer.size or 0) >= self._chunk

    def write(self, event: Event, line: bytes | None = None) -> None:
        """Take one event; it is in the file after the next :meth:`flush`. Do nothing once closed.

        *line* is the event's JSON and a newline, if that has been made already.

        Raises:
            RecordingError: the buffer was full, so it was flushed; see :meth:`flush`.
        """
        if self.closed:
            return
        kept = event.recorded()
        if line is None or kept is not event:
            line = encode(kept) + b"\n"
        self._t = max(self._t, event.t)
        self._buffer.append(line)
        if self._packer is not None:
            self._unthinned += 0 if kept.droppable else len(line)
            if self._unthinned < _LONGEST_OUTLINE:
                self._outlined += self._outline.add(kept)
            if kept.once:
                self._once[kept.t] = self._chunk_at
        self._buffered += len(line)
        if self._buffered >= _FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        """Pass all lines taken so far to the system, in one write.

        Raises:
            RecordingError: the file cannot be written (a full disk). This is raised once. The recording then ends at
                its last whole line, and later events are dropped.
        """
        if self.closed or not self._buffer:
            return
        text = b"".join(self._buffer)
        self._buffer.clear()
        self._buffered = 0
        packer = self._packer
        if packer is not None:
            text = (packer.begin(0.0) if packer.size is None else b"") + packer.add(text)
        self._put(text)

    def begin_chunk(self, known: Iterable[Event]) -> None:
        """Flush, and begin the next chunk with the events *known* and an outline of the chunk before.

        *known* are the events that a reader needs if it has not read the chunks before.

        Raises:
            RecordingError: the file cannot be written; see :meth:`flush`.
        """
        self.flush()
        packer = self._packer
        if packer is None or self.closed:
            return
        so_far = self._so_far(known)
        outline = repeat(OUTLINE, self._t, [*self._outlined, *self._outline.rest()])
        whole = max(len(outline), self._unthinned) < _LONGEST_OUTLINE
        self._outlined.clear()
        self._unthinned = 0
        lines = (so_far if len(so_far) < LONGEST_LINE else b"") + (outline if whole else b"")
        self._chunk = max(CHUNK, _SHARE * len(lines))
        end = packer.end()
        self._chunk_at = self.size + len(end)
        self._put(end + packer.begin(self._t) + packer.add(lines))

    def _so_far(self, known: Iterable[Event]) -> bytes:
        told: list[Event] = []
        places: Elsewhere = {}
        for event in known:
            if event.once and event.t in self._once:
                places.setdefault(self._once[event.t], set()).add(event.t)
            else:
                told.append(event)
        # Events that are not needed now will not be needed later.
        self._once = {t: at for at, times in places.items() for t in times}
        return repeat(SO_FAR, self._t, told, places)

    def _put(self, packed: bytes) -> None:
        data = memoryview(packed)
        done = 0
        try:
            if self._stale:
                self._make_private()
                os.ftruncate(self._descriptor, 0)
                self._stale = False
            while done < len(data):
                done += os.write(self._descriptor, data[done:])
        except OSError as error:
            if self._packer is None:
                self._cut(self.size + bytes(data[:done]).rfind(b"\n") + 1)
            self._drop()
            raise stopped(self.path, reason_of(error)) from error
        self.size += done

    def abandon(self) -> None:
        """Take and write nothing more, though another thread may wait for a file system that does not answer."""
        self._descriptor = -1

    def close(self) -> None:
        """Flush and close the file. Closing twice does nothing.

        Raises:
            RecordingError: the file cannot be written; see :meth:`flush`.
        """
        try:
            self.flush()
            if self._packer is not None and not self.closed:
                self._put(self._packer.end())
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
