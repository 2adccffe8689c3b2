"""A library as it lies in another process's memory: its exported symbols, its build, its own variables.

The library is read from memory and not from its file: the file may be in another container, or may have been replaced
since.
"""

from struct import Struct
from typing import NamedTuple

from tfmemtop.engine.sources.outside.remote import RemoteMemory
from tfmemtop.events import Damage
from tfmemtop.events.damage import Damaged

_HEAD = Struct("<4sBB10xHHIQQQIHHH")
_SEGMENT = Struct("<IIQQQQQQ")
_PAIR, _WORD, _HASH, _SYMBOL = Struct("<qQ"), Struct("<I"), Struct("<IIII"), Struct("<IBBHQQ")
_LOAD, _DYNAMIC, _NOTE = 1, 2, 4
_WRITABLE = 2
_STRINGS, _SYMBOLS, _GNU_HASH = 5, 6, 0x6FFFFEF5
_BUILD_ID = 3
_MOST_SEGMENTS, _MOST_ENTRIES, _LONGEST_CHAIN = 64, 512, 4096


class NotReadable(Damaged):
    """The memory that was read does not contain a 64-bit little-endian library as the linker makes them."""


class Bss(NamedTuple):
    """The library's ``.bss``, the variables that are zero at its start: address, and size in bytes."""

    address: int
    size: int


class Library:
    """The library whose first byte lies at *base*.

    Raises:
        NotReadable: no library lies there, or its segments or its table of symbols cannot be read.
        Gone: the process has no memory any more.
    """

    def __init__(self, memory: RemoteMemory, base: int) -> None:
        self._memory = memory
        self._base = base
        head = memory.values(base, _HEAD)
        if head is None or head[0] != b"\x7fELF" or head[1:3] != (2, 1):
            raise NotReadable(Damage.NOT_A_LIBRARY)
        places, size, count = head[7], head[11], head[12]
        if size != _SEGMENT.size or not 0 < count <= _MOST_SEGMENTS:
            raise NotReadable(Damage.NO_SEGMENTS)
        table = memory.block(base + places, size * count)
        if table is None:
            raise NotReadable(Damage.NO_SEGMENTS)
        segments = list(_SEGMENT.iter_unpack(table))
        linked_for = min((segment[3] for segment in segments if segment[0] == _LOAD), default=0)
        self._base = base = base - (linked_for & ~0xFFF)
        self.bss = [
            Bss(base + address + in_file, in_memory - in_file)
            for kind, flags, _, address, _, in_file, in_memory, _ in segments
            if kind == _LOAD and flags & _WRITABLE and in_memory > in_file
        ]
        self.build_id = self._build_id([(s[3], s[5]) for s in segments if s[0] == _NOTE])
        self._dynamic = self._entries(next((s[3] for s in segments if s[0] == _DYNAMIC), 0))

    def symbol(self, name: bytes) -> int | None:
        """Return the address of the exported symbol *name*; ``None`` if the library exports none of that name.

        Raises:
            NotReadable: the library's table of symbols is invalid.
        """
        memory, table = self._memory, self._dynamic[_GNU_HASH]
        head = memory.values(table, _HASH)
        if head is None or not head[0]:
            raise NotReadable(Damage.NO_SYMBOLS)
        buckets, first, filters, _ = head
        wanted = _hash(name)
        at = table + _HASH.size + 8 * filters
        found = memory.values(at + 4 * (wanted % buckets), _WORD)
        index = found[0] if found else 0
        if index < first:
            return None
        chains = at + 4 * buckets - 4 * first
        for number in range(index, index + _LONGEST_CHAIN):
            mark = memory.values(chains + 4 * number, _WORD)
            if mark is None:
                raise NotReadable(Damage.NO_SYMBOLS)
            if mark[0] | 1 == wanted | 1 and (address := self._named(number, name)) is not None:
                return address
            if mark[0] & 1:
                return None
        raise NotReadable(Damage.NO_SYMBOLS)

    def _named(self, number: int, name: bytes) -> int | None:
        symbol = self._memory.values(self._dynamic[_SYMBOLS] + number * _SYMBOL.size, _SYMBOL)
        if symbol is None:
            raise NotReadable(Damage.NO_SYMBOLS)
        text, _, _, section, value, _ = symbol
        if not section or self._memory.text(self._dynamic[_STRINGS] + text) != name:
            return None
        return int(self._base + value)

    def _entries(self, address: int) -> dict[int, int]:
        found: dict[int, int] = {}
        for number in range(_MOST_ENTRIES):
            pair = self._memory.values(self._base + address + number * _PAIR.size, _PAIR)
            if pair is None or pair[0] == 0:
                break
            # The C library has added the address where it loaded the library, or (musl) left the value as in the file.
            found[pair[0]] = pair[1] if pair[1] >= self._base else pair[1] + self._base
        if {_STRINGS, _SYMBOLS, _GNU_HASH} - found.keys():
            raise NotReadable(Damage.NO_SYMBOLS)
        return found

    def _build_id(self, notes: list[tuple[int, int]]) -> str | None:
        for address, size in notes:
            text = self._memory.block(self._base + address, min(size, 4096)) or b""
            at = 0
            while at + 12 <= len(text):
                name, length, kind = Struct("<III").unpack_from(text, at)
                start = at + 12 + (name + 3 & ~3)
                if kind == _BUILD_ID and text[at + 12 : at + 16] == b"GNU\0":
                    return text[start : start + length].hex()
                at = start + (length + 3 & ~3)
        return None


def _hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value
