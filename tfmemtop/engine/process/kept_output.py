"""Writes the script's output to a file of bounded size, which keeps the beginning and the end of the output.

The keeper uses this, so it imports little. A writer continues where the one before it stopped, even if that was killed
during a write.

The first ``HEAD`` bytes of the file stay. Once ``2 * TAIL`` more bytes have been written, the last ``TAIL`` bytes, from
the start of a line, are moved to directly behind the head. A line between the two contains the number of bytes that are
left out there. That line has a fixed place and length. While the end is being moved, the line also contains the byte at
which the file continues in order, so that a file whose writer was killed can be read and repaired.
"""

import fcntl
import os
import time

from tfmemtop.units import MIB

HEAD = 16 * MIB
"""Bytes kept of the beginning; whole pages, so that a killed writer does not leave the line after them half written."""
TAIL = 16 * MIB
"""Bytes kept of the end, at least; there may be twice as many."""


def _left_out(count: int, continues_at: int = 0) -> str:
    """Return the line in place of *count* bytes; where it is not 0, the file continues at its byte *continues_at*."""
    where = f", up to byte {continues_at:015d} of this file" if continues_at else ""
    return f"[tfmemtop: {count:015d} bytes left out here{where}]"


_LENGTH = len(f"\n{_left_out(0, 1)}\n")
_PIECE = MIB
_LONGEST_LINE = 64 * 1024
_RETRY_S = 1.0


class KeptOutput:
    """Appends to the file *path*, which is created with the first write.

    It raises nothing. ``trouble`` is why the newest bytes could not be written, or "" if they were written. A full disk
    may have room again later, so a write is tried once a second. A line in the file then contains the number of bytes
    that were lost.
    """

    def __init__(self, path: bytes | str | os.PathLike[str], head: int = HEAD, tail: int = TAIL) -> None:
        self._path = os.fspath(path)
        self._head = head
        self._tail = tail
        self._file: int | None = None
        self._size = 0
        self._lost = 0
        self._retry_at = 0.0  # by the machine's monotonic clock
        self.trouble = ""

    def write(self, data: bytes | bytearray | memoryview, skipped: int = 0) -> None:
        """Append *data*, or count it as lost and store the reason in ``trouble``. *skipped* bytes were left out before.

        A line in the file tells of them.
        """
        if not data:
            return
        self._lost += skipped
        if self.trouble and time.monotonic() < self._retry_at:
            self._lost += len(data)
            return
        written = 0
        try:
            if self._file is None:
                self._open()
            if self._lost:
                self._append(_told(self._lost))
                self._lost = 0
            while written < len(data):
                written += self._append(memoryview(data)[written : written + self._tail])
                if self._size > self._head + _LENGTH + 2 * self._tail:
                    self._shorten()
            self.trouble = ""
        except OSError as error:
            self._lost += len(data) - written
            self.trouble = error.strerror or str(error)
            self._retry_at = time.monotonic() + _RETRY_S

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self._path, flags, 0o600)
        self._size = os.fstat(self._file).st_size
        self._shorten(begun_only=True)

    def _append(self, data: bytes | memoryview) -> int:
        assert self._file is not None
        count = os.write(self._file, data)
        self._size += count
        return count

    def _shorten(self, begun_only: bool = False) -> None:
        """Move the file's end to behind its head; with *begun_only*, only finish a move that a killed writer began."""
        assert self._file is not None
        file, behind = self._file, self._head + _LENGTH
        self._size = os.fstat(file).st_size  # another program may have emptied the file meanwhile
        known = _read(os.pread(file, _LENGTH, self._head))
        count, start = known or (0, 0)
        begun = behind < start
        if begun_only and not begun:
            return
        if not begun:
            if self._size <= behind + 2 * self._tail:
                return
            start = self._line_start(self._size - self._tail)
            count += start - (behind if known else self._head)
        # With O_APPEND, even a write at an offset goes to the end of the file.
        flags = fcntl.fcntl(file, fcntl.F_GETFL)
        fcntl.fcntl(file, fcntl.F_SETFL, flags & ~os.O_APPEND)
        try:
            _put(file, _line(count, start), self._head)
            if start < self._size:  # else the killed writer had finished both the move and the cut
                moved = 0
                while piece := os.pread(file, min(_PIECE, start - behind), start + moved):
                    _put(file, piece, behind + moved)
                    moved += len(piece)
                os.ftruncate(file, behind + moved)
            _put(file, _line(count), self._head)
        finally:
            fcntl.fcntl(file, fcntl.F_SETFL, flags)
            self._size = os.fstat(file).st_size

    def _line_start(self, position: int) -> int:
        assert self._file is not None
        found = os.pread(self._file, min(_LONGEST_LINE, self._tail // 2), position).find(b"\n")
        return position + found + 1


def _told(lost: int) -> bytes:
    return f"\n{_left_out(lost)}\n".encode()


def _line(count: int, start: int = 0) -> bytes:
    return f"\n{_left_out(count, start)}".encode().ljust(_LENGTH - 1) + b"\n"


def _read(line: bytes) -> tuple[int, int] | None:
    """Return the number of bytes left out, and the byte where the file continues while its end is being moved, else 0.

    Return ``None`` for any other line.
    """
    numbers = [int(word) for word in line.split() if word.isdigit()]
    count, start = (*numbers, 0, 0)[:2]
    return (count, start) if line == _line(count, start) else None


def _put(file: int, data: bytes, position: int) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(file, data[written:], position + written)
