"""The memory of another process, as the kernel shows it in ``/proc/PID/maps`` and ``/proc/PID/mem``.

And whether it may be read, and if not, why. Also the TensorFlow in it: where its library lies, its version, and what
the library exports. Its files are read as the process sees them: in a container these are the container's own.
"""

import errno
import os
import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, NamedTuple

from tfmemtop.engine.sources.processes import ancestors
from tfmemtop.events import Damage, OutsideState
from tfmemtop.events.damage import Damaged

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


class NoMemory(Exception):
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
            NoMemory: the process has no memory any more.
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
                raise NoMemory from None
            raise
        if not found:
            raise NoMemory
        return found if len(found) == size else None

    def values(self, address: int, form: Struct) -> tuple[Any, ...] | None:
        """Return the values at *address*, unpacked by *form*; ``None`` if not all their bytes are there."""
        found = self.block(address, form.size)
        return None if found is None else form.unpack(found)


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


NAME = "libtensorflow_framework.so"
"""The library that contains the allocators, in all of TensorFlow's own packages."""

_DELETED = " (deleted)"
_PACKAGE = re.compile(r"(?:tensorflow|tf_nightly)(?:_cpu|_gpu|_intel|_rocm|_cpu_aws)?-(\d.{0,62})\.dist-info")

_HEAD = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT, _SECTION = struct.Struct("<IIQQQQQQ"), struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_64_BIT_LITTLE_ENDIAN = b"\x7fELF\2\1"
_LOAD, _DYNAMIC_SYMBOLS = 1, 11  # kinds of a segment and of a section
_WRITABLE = 2
_MOST_BYTES = 1 << 26  # of a table in the file


class Mapped(NamedTuple):
    """TensorFlow's library in a process: where its first byte lies, and its file as the process sees it."""

    base: int
    path: str
    inode: int
    deleted: bool

    @property
    def folder(self) -> str:
        """The folder of the package."""
        return os.path.dirname(self.path)  # noqa: PTH120 (of another process, perhaps elsewhere)

    def file(self, pid: int) -> Path | None:
        """Return the library's file; ``None`` if another file is in its place since process *pid* has loaded it."""
        path = Path(f"/proc/{pid}/root{self.path}")
        try:
            # Overlay file systems show another device in the list of mappings than in the file's status.
            same = path.stat().st_ino == self.inode
        except OSError:
            same = False
        return path if same and not self.deleted else None


def mapped(found: Iterable[Mapping]) -> Mapped | None:
    """Return TensorFlow's library; ``None`` if it is not there."""
    for one in found:
        if one.offset == 0 and one.path.rpartition("/")[2].startswith(NAME):
            return Mapped(one.start, one.path.removesuffix(_DELETED), one.inode, one.path.endswith(_DELETED))
    return None


def version_of(file: Path) -> str | None:
    """Return the version of TensorFlow's package beside the library *file*.

    ``None`` if there is no such package, or there are several of different versions.
    """
    names = (_PACKAGE.fullmatch(each.name) for each in file.parent.parent.glob("t*f*.dist-info"))
    versions = {found[1] for found in names if found}
    return versions.pop() if len(versions) == 1 else None


def python_of(found: Iterable[Mapping]) -> str:
    """Return the Python version by its library or standard library, as ``3.11``; empty where neither is mapped."""
    for one in found:
        if match := re.search(r"python(3\.\d{1,2})(?=[./t-]|$)", one.path.rpartition("/site-packages")[0] or one.path):
            return match[1]
    return ""


class Bss(NamedTuple):
    """A library's ``.bss``, the variables that are zero at its start: address, and size in bytes."""

    address: int
    size: int


class MappedLibrary:
    """The library of *file*, whose first byte lies at *base* in the process's memory.

    Raises:
        Damaged: the file is not a library, or its table of symbols cannot be read.
        OSError: the file cannot be read.
    """

    def __init__(self, file: Path, base: int) -> None:
        with file.open("rb") as opened:
            try:
                head = _HEAD.unpack(_part(opened, 0, _HEAD.size))
                segments_at, sections_at, segments, sections = head[5], head[6], head[10], head[12]
                if not head[0].startswith(_64_BIT_LITTLE_ENDIAN):
                    raise Damaged(Damage.NOT_A_LIBRARY)
                loaded = [
                    segment
                    for segment in _SEGMENT.iter_unpack(_part(opened, segments_at, segments * _SEGMENT.size))
                    if segment[0] == _LOAD
                ]
                tables = list(_SECTION.iter_unpack(_part(opened, sections_at, sections * _SECTION.size)))
                symbols = next(table for table in tables if table[1] == _DYNAMIC_SYMBOLS)
                names = tables[symbols[6]]
                self._symbols = _part(opened, symbols[4], symbols[5])
                self._names = _part(opened, names[4], names[5])
            except (struct.error, StopIteration, IndexError):
                raise Damaged(Damage.NO_SYMBOLS) from None
        self._base = base - (min((segment[3] for segment in loaded), default=0) & ~0xFFF)
        self.bss = [
            Bss(self._base + address + in_file, in_memory - in_file)
            for _, flags, _, address, _, in_file, in_memory, _ in loaded
            if flags & _WRITABLE and in_memory > in_file
        ]

    def addresses(self, names: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
        """Yield those of *names* that the library exports, and their addresses in the process's memory."""
        places = {self._names.find(b"\0" + name + b"\0") + 1: name for name in names}
        for place, _, _, section, value, _ in _SYMBOL.iter_unpack(self._symbols):
            if section and place and place in places:
                yield places[place], self._base + value


def _part(file: BinaryIO, at: int, size: int) -> bytes:
    if at >= 1 << 63:
        raise Damaged(Damage.NO_SYMBOLS)
    file.seek(at)
    return file.read(min(size, _MOST_BYTES))
