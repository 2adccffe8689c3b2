"""Writes recordings: the kernel gets whole lines only, so one is complete up to its last line."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from tfmemtop.events import Event, encode
from tfmemtop.recording.chunks import Packer
from tfmemtop.recording.errors import RecordingError, Trouble, reason_of
from tfmemtop.recording.header import LONGEST_LINE, header_of
from tfmemtop.recording.outline import Outline
from tfmemtop.recording.reader import first_line
from tfmemtop.recording.repeats import OUTLINE, SO_FAR, Elsewhere, repeat

_MODE = 0o600  # command lines and output are this user's alone
_FLUSH_AT = 64 * 1024
_PLAIN_FLUSH_S, _PACKED_FLUSH_S = 0.2, 1.0
PLAIN = ".jsonl"
"""The ending of a file's name that keeps it from being compressed."""

CHUNK = 8 * 2**20
"""Bytes of text after which a compressed recording begins a new chunk: ten minutes of one script on one GPU."""

_SHARE = 4
"""A chunk is at least so many times as long as the lines that it begins with."""


class Writer:
    """Writes events to a file, a line each; compressed, unless the file's name ends in :data:`PLAIN`.

    A compressed recording is written in chunks. Each but the first begins with what ``so_far`` gives then, the events
    which a reader needs that has not read those before; and with an outline of the chunk before. ``so_far`` may give
    ``None``: then reading cannot begin there.

    A file that is already there is overwritten if it is empty or itself a tfmemtop recording, with
    the first flush, and left alone if it is anything else. A device such as ``/dev/null`` is
    written to.

    Raises:
        RecordingError: the file cannot be written, holds something else, or another tfmemtop is
            writing to it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.so_far: Callable[[], Iterable[Event] | None] = lambda: None
        self._packer = None if self.path.name.endswith(PLAIN) else Packer()
        self.flush_s = _PLAIN_FLUSH_S if self._packer is None else _PACKED_FLUSH_S
        """Seconds after which to flush: what is flushed more often is compressed less well."""
        self._t = 0.0  # of the newest event
        self._chunk = CHUNK  # bytes of text until the next one
        self._outline = Outline()
        self._outlined: list[Event] = []  # of the chunk so far
        self._once: dict[float, int] = {}  # times of events that are told once, and the chunk that has them
        self._chunk_at = 0  # where in the file the present one begins
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._written = 0  # bytes of whole lines in the file
        self._stale = False  # the file still holds an older recording
        try:
            # Non-blocking: a named pipe without a reader would otherwise hold up the start for ever.
            self._descriptor = os.open(
                self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, _MODE
            )
        except (OSError, ValueError) as error:
            raise RecordingError(Trouble.UNWRITABLE, self.path, reason_of(error)) from error
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
            raise RecordingError(Trouble.NO_FILE_TO_WRITE, self.path)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # A file system without locks is no reason not to record.
            if error.errno == errno.EWOULDBLOCK:
                raise RecordingError(Trouble.TAKEN, self.path) from error
        if os.fstat(self._descriptor).st_size:
            with self.path.open("rb") as file:
                if header_of(first_line(file)) is None:
                    raise RecordingError(Trouble.FOREIGN, self.path)
            # Only once there is something to put in its place: the run may yet fail to start.
            self._stale = True
        else:
            self._make_private()

    def _make_private(self) -> None:
        """For any umask, and even if others could read what was there before."""
        try:
            os.fchmod(self._descriptor, _MODE)
        except OSError:
            pass  # another user's file, who lets us write to it, or a file system without modes

    @property
    def closed(self) -> bool:
        """Whether the recording has ended, by :meth:`close` or by a failed write."""
        return self._descriptor < 0

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._written

    def write(self, event: Event, line: bytes | None = None) -> None:
        """Take one event; it is in the file after the next :meth:`flush`. Nothing once closed.

        *line* is its JSON and a newline, where that has been made already.

        Raises:
            RecordingError: as :meth:`flush`, which a full buffer sets off.
        """
        if self.closed:
            return
        kept = event.recorded()
        if line is None or kept is not event:
            line = encode(kept) + b"\n"
        self._t = max(self._t, event.t)
        self._buffer.append(line)
        if self._packer is not None:
            self._outlined += self._outline.add(kept)
            if kept.once:
                self._once[kept.t] = self._chunk_at
        self._buffered += len(line)
        if self._buffered >= _FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        """Hand all lines taken so far to the kernel, in one write.

        Raises:
            RecordingError: once, if the file cannot take them (a full disk). The recording then
                ends at its last whole line, and later events are dropped.
        """
        if self.closed or not self._buffer:
            return
        text = b"".join(self._buffer)
        self._buffer.clear()
        self._buffered = 0
        self._put(text if self._packer is None else self._pack(self._packer, text))

    def _pack(self, packer: Packer, text: bytes) -> bytes:
        if packer.size is None:
            return packer.begin(0.0) + packer.add(text)
        packed = packer.add(text)
        if packer.size < self._chunk:
            return packed
        known = self.so_far()
        so_far = b"" if known is None else self._so_far(known)
        outline = repeat(OUTLINE, self._t, [*self._outlined, *self._outline.rest()])
        self._outlined.clear()
        self._chunk = max(CHUNK, _SHARE * (len(so_far) + len(outline)))
        # An outline of a chunk that has little but output would say it all again.
        lines = (so_far if len(so_far) < LONGEST_LINE else b"") + (outline if len(outline) < packer.size / 3 else b"")
        packed += packer.end()
        self._chunk_at = self._written + len(packed)
        return packed + packer.begin(self._t) + packer.add(lines)

    def _so_far(self, known: Iterable[Event]) -> bytes:
        told: list[Event] = []
        places: Elsewhere = {}
        for event in known:
            if event.once and event.t in self._once:
                places.setdefault(self._once[event.t], set()).add(event.t)
            else:
                told.append(event)
        # What is not needed now will not be needed later.
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
                self._cut(self._written + bytes(data[:done]).rfind(b"\n") + 1)
            self._drop()
            raise RecordingError(Trouble.STOPPED, self.path, reason_of(error)) from error
        self._written += done

    def close(self) -> None:
        """Flush and close the file. Closing twice does nothing.

        Raises:
            RecordingError: as :meth:`flush`.
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
