"""The TensorFlow of a process: where its library lies, its version, and what the library exports.

The files are read as the process sees them: in a container these are the container's own.
"""

import os
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tfmemtop.engine.sources.outside.remote import Mapping
from tfmemtop.events import Damage
from tfmemtop.events.damage import Damaged

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


class Library:
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
