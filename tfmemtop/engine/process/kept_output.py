"""Writes the script's output to a file of bounded size, which keeps the beginning and the end of the output.

The keeper uses this, so it imports little. The first ``HEAD`` bytes of the file stay. Once ``2 * TAIL`` more bytes have
been written, a shorter file takes its place, with the last ``TAIL`` bytes from the start of a line. A line between the
two parts contains the number of bytes that are left out there. The file is replaced as a whole, so a writer that is
killed leaves it as it was.
"""

import os
import time

from tfmemtop.units import MIB

HEAD = 16 * MIB
"""Bytes kept of the beginning."""
TAIL = 16 * MIB
"""Bytes kept of the end, at least; there may be twice as many."""

_PIECE = MIB
_LONGEST_LINE = 64 * 1024
_RETRY_S = 1.0
_DRAFT = b".part.log"
"""The ending of the name of the shorter file while it is written."""


class KeptOutput:
    """Appends to the file *path*, which is created with the first write.

    It raises nothing. ``trouble`` is why the newest bytes could not be written, or "" if they were written. A full disk
    may have room again later, so a write is tried once a second. A line in the file then contains the number of bytes
    that were lost.
    """

    def __init__(self, path: bytes | str | os.PathLike[str], head: int = HEAD, tail: int = TAIL) -> None:
        self._path = os.fsencode(path)
        self._head = head
        self._tail = tail
        self._file: int | None = None
        self._size = 0
        self._left_out = 0  # bytes between head and end
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
                self._file = _open(self._path, os.O_CREAT)
                self._size = os.fstat(self._file).st_size
            if self._lost:
                self._size += os.write(self._file, _line(self._lost))
                self._lost = 0
            while written < len(data):
                count = os.write(self._file, memoryview(data)[written : written + self._tail])
                written += count
                self._size += count
                if self._size > self._head + 2 * self._tail:
                    self._file = self._shortened(self._file)
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

    def _shortened(self, old: int) -> int:
        """Put a shorter file in the place of *old*, and return it. Return *old* if another program has emptied it.

        Raises:
            OSError: the shorter file cannot be written.
        """
        self._size = os.fstat(old).st_size
        if self._size <= self._head + 2 * self._tail:
            self._left_out = 0
            return old
        start = _line_start(old, self._size - self._tail, self._tail // 2)
        behind_head = self._head + (len(_line(self._left_out)) if self._left_out else 0)
        left_out = self._left_out + start - behind_head
        draft = self._path + _DRAFT
        new = _open(draft, os.O_CREAT | os.O_TRUNC)
        try:
            _copy(old, new, 0, self._head)
            os.write(new, _line(left_out))
            _copy(old, new, start, self._size)
            os.replace(draft, self._path)
        except BaseException:
            os.close(new)
            os.unlink(draft)
            raise
        os.close(old)
        self._left_out, self._size = left_out, os.fstat(new).st_size
        return new


def _open(path: bytes, flags: int) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)


def _line(left_out: int) -> bytes:
    return f"\n[tfmemtop: {left_out:015d} bytes left out here]\n".encode()


def _line_start(file: int, position: int, within: int) -> int:
    return position + os.pread(file, min(_LONGEST_LINE, within), position).find(b"\n") + 1


def _copy(source: int, target: int, start: int, end: int) -> None:
    while start < end and (piece := os.pread(source, min(_PIECE, end - start), start)):
        written = 0
        while written < len(piece):
            written += os.write(target, piece[written:])
        start += len(piece)
