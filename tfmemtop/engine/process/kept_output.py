"""Writes the script's output to a file of bounded size, which keeps the beginning and the end of the output.

The keeper uses this, so it imports little. The first ``HEAD`` bytes of the file stay. Once ``2 * TAIL`` more bytes have
been written, the last ``TAIL`` bytes, from the start of a line, are moved to directly behind the head, in the same file
and without further space on the disk. A line between the two parts contains the number of bytes that are left out
there, and the byte after which the output goes on. The old and the new place of the end do not overlap, so that a file
whose writer was killed contains the whole end.
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


class KeptOutput:
    """Appends to the file *path*, which is created with the first write.

    It raises nothing. ``trouble`` is why the newest bytes could not be written, or "" if they were written. A full disk
    may have room again later, so a write is tried once a second. A line in the file then contains the number of bytes
    that were lost.
    """

    def __init__(self, path: bytes | str | os.PathLike[str], head: int = HEAD, tail: int = TAIL) -> None:
        self._path = path
        self._head = head
        self._behind = head + len(_line(0, 0))  # where the end begins, once something is left out
        self._tail = tail
        self._file: int | None = None
        self._left_out = 0  # bytes between head and end
        self._goes_on = head  # the number of bytes in the file before the end
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
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if self._lost:
                self._append(self._file, f"\n[tfmemtop: {self._lost:015d} bytes left out here]\n".encode())
                self._lost = 0
            while written < len(data):
                written += self._append(self._file, memoryview(data)[written : written + self._tail // 2])
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

    def _append(self, file: int, data: bytes | memoryview) -> int:
        """Write *data* to the end of *file*, which may be shortened first. Return how many bytes were written."""
        size = os.fstat(file).st_size  # another program may have emptied the file
        if size > self._behind + 2 * self._tail:
            size = self._shortened(file, size)
        return os.pwrite(file, data, size)

    def _shortened(self, file: int, size: int) -> int:
        """Move the end of *file*, which has *size* bytes, to behind the head. Return the new size."""
        line = _line(self._left_out, self._goes_on)
        if os.pread(file, len(line), self._head) != line:  # nothing was left out yet, or the file was emptied since
            self._left_out, self._goes_on = 0, self._head
        start = size - self._tail
        start += os.pread(file, min(_LONGEST_LINE, self._tail // 2), start).find(b"\n") + 1
        left_out = self._left_out + start - self._goes_on
        os.pwrite(file, _line(left_out, start), self._head)
        self._left_out, self._goes_on = left_out, start
        size = self._behind
        while piece := os.pread(file, _PIECE, start):
            moved = os.pwrite(file, piece, size)
            start += moved
            size += moved
        os.ftruncate(file, size)
        os.pwrite(file, _line(left_out, self._behind), self._head)
        self._goes_on = self._behind
        return size


def _line(left_out: int, goes_on: int) -> bytes:
    return f"\n[tfmemtop: {left_out:015d} bytes left out here; the output goes on after byte {goes_on:015d}]\n".encode()
