"""The memory of another process, as the kernel shows it in ``/proc/PID/maps`` and ``/proc/PID/mem``.

And whether it may be read, and if not, why.
"""

import errno
import os
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

from tfmemtop.engine.sources.processes import ancestors
from tfmemtop.events import OutsideState

_HIGHEST = 1 << 63  # higher addresses are the kernel's own
_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_SYS_PTRACE = 19  # the bit of CAP_SYS_PTRACE, from include/uapi/linux/capability.h


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


class Rights(NamedTuple):
    """What decides whether this process may read the memory of another one."""

    own_uid: int
    capable: bool  # CAP_SYS_PTRACE
    scope: int  # of the security module Yama; 0 where there is no such module
    uid: int | None  # the other process's
    ancestor: bool  # whether the other descends from this process
    dumpable: bool  # whether the other lets its user look into it


def rights(pid: int) -> Rights:
    """Return what can be known of the rights on process *pid*."""
    own = _status(Path("/proc/self/status"))
    other = _status(Path(f"/proc/{pid}/status"))
    uid = int(other["Uid"].split()[0]) if "Uid" in other else None
    try:
        # If a process must not be looked into, the kernel makes root the owner of its files.
        owner: int | None = os.stat(f"/proc/{pid}/stat").st_uid  # noqa: PTH116 (no path of a file)
    except OSError:
        owner = uid
    try:
        scope = int(_SCOPE.read_text())
    except (OSError, ValueError):
        scope = 0
    capable = bool(int(own.get("CapEff", "0"), 16) >> _SYS_PTRACE & 1)
    return Rights(os.getuid(), capable, scope, uid, os.getpid() in ancestors(pid), uid is None or owner == uid)


def in_the_way(found: Rights) -> OutsideState:
    """Return the most important reason why this process cannot read the other's memory."""
    if found.uid is not None and found.uid != found.own_uid and not found.capable:
        return OutsideState.NO_CAPABILITY if found.own_uid == 0 else OutsideState.OTHER_USER
    if found.scope == 3:
        return OutsideState.NOBODY_MAY
    if found.capable:
        return OutsideState.REFUSED  # the process has more rights, or a security module forbids it
    if found.scope == 2:
        return OutsideState.ONLY_ROOT
    if found.scope == 1 and not found.ancestor:
        return OutsideState.ONLY_ANCESTORS
    if not found.dumpable:
        return OutsideState.PROTECTED
    return OutsideState.NO_CAPABILITY if found.own_uid == 0 else OutsideState.REFUSED


def _status(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
