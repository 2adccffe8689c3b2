"""The memory of another process, as the kernel shows it: ``/proc/PID/maps`` and ``/proc/PID/mem``."""

import errno
import os
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

_HIGHEST = 1 << 63  # higher addresses are the kernel's own


class Mapping(NamedTuple):
    """A piece of a process's address space. ``path`` is empty for memory that belongs to no file."""

    start: int
    end: int
    writable: bool
    offset: int
    device: str
    inode: int
    path: str


class Gone(Exception):
    """The process has no memory any more: it has ended, or has become another program."""


def mappings(pid: int) -> Iterator[Mapping]:
    """Yield the pieces of a process's address space, in the order of their addresses.

    Raises:
        OSError: the process has ended, or may not be looked at.
    """
    for line in Path(f"/proc/{pid}/maps").read_bytes().splitlines():
        fields = line.split(None, 5)
        start, _, end = fields[0].partition(b"-")
        path = os.fsdecode(fields[5]) if len(fields) > 5 else ""
        offset, device, inode = int(fields[2], 16), fields[3].decode(), int(fields[4])
        yield Mapping(int(start, 16), int(end, 16), fields[1][1:2] == b"w", offset, device, inode, path)


class RemoteMemory:
    """The memory that process *pid* has now.

    After an ``exec`` the process has another memory, which this object does not read. So the memory of two programs is
    never mixed up.

    Raises:
        OSError: the process has ended, or its memory may not be read.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor: int | None = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Close the memory."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def block(self, address: int, size: int) -> bytes | None:
        """Return *size* bytes at *address*; ``None`` if not all of them are there.

        Raises:
            Gone: the process has no memory any more.
            PermissionError: the memory may no longer be read.
        """
        if size == 0:
            return b""
        if not 0 < address < _HIGHEST or size < 0 or self._descriptor is None:
            return None
        try:
            found = os.pread(self._descriptor, size, address)
        except OSError as error:
            if error.errno in (errno.EIO, errno.EFAULT, errno.EINVAL, errno.ENOMEM):
                return None  # no memory is mapped there
            if error.errno == errno.ESRCH:
                raise Gone from None
            raise
        if not found:
            raise Gone
        return found if len(found) == size else None

    def values(self, address: int, form: Struct) -> tuple[Any, ...] | None:
        """Return the values at *address*, unpacked by *form*; ``None`` if not all their bytes are there."""
        found = self.block(address, form.size)
        return None if found is None else form.unpack(found)

    def text(self, address: int, most: int = 256) -> bytes:
        """Return the text at *address* up to its zero byte; empty if there is none, or it is longer than *most*."""
        # First only to the end of the page: perhaps nothing is mapped after it.
        first = min(most, 4096 - address % 4096)
        found = self.block(address, first) or b""
        if b"\0" not in found and first < most:
            found += self.block(address + first, most - first) or b""
        return found.partition(b"\0")[0] if b"\0" in found else b""


class Regions:
    """The addresses that an object can have: those inside writable memory that belongs to no file."""

    def __init__(self, found: list[Mapping]) -> None:
        pieces = [(m.start, m.end) for m in found if m.writable and (not m.inode or m.path == "[heap]")]
        self.pieces = sorted(pieces)
        self._starts = [start for start, _ in self.pieces]

    def __contains__(self, address: int) -> bool:
        place = bisect_right(self._starts, address) - 1
        return place >= 0 and address < self.pieces[place][1]
