"""The file of a compressed recording: gzip members, one after the other, so that ``zcat`` reads it as one text.

Each member is a chunk that can be found and read without those before it. Its gzip header has an extra field ``TM``,
which contains the session's time at the beginning of the chunk. Each addition is flushed to a byte boundary, so that a
chunk whose writer was killed can be read up to the last addition.
"""

import io
import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from tfmemtop.units import MIB

_GZIP = b"\x1f\x8b"  # the first bytes of every gzip file
_BEGINNING = _GZIP + b"\x08\x04" + bytes(5) + b"\xff" + struct.pack("<H", 12) + b"TM" + struct.pack("<H", 8)
_TIME = struct.Struct("<d")
_TRAILER = struct.Struct("<II")
_HEAD_SIZE = len(_BEGINNING) + _TIME.size
_LEVEL = 9
_PIECE = MIB  # bytes of the file read at once
_AT_ONCE = 64 * 1024  # bytes given to zlib at once


class Chunk(NamedTuple):
    """Where a chunk begins: the byte in the file, and the second of the session. All its events are later."""

    offset: int
    t: float


class Packer:
    """Makes the bytes of chunks. ``size`` is the size of the present chunk's text so far; ``None`` without a chunk."""

    def __init__(self) -> None:
        self.size: int | None = None
        self._crc = 0
        self._deflate: Any = None

    def begin(self, t: float) -> bytes:
        """Begin a chunk at *t* seconds, and end the one before. Return the bytes to write."""
        before = self.end()
        self.size = self._crc = 0
        self._deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        return before + _BEGINNING + _TIME.pack(t)

    def add(self, text: bytes) -> bytes:
        """Add *text* to the present chunk. Return the bytes to write."""
        assert self.size is not None
        self.size += len(text)
        self._crc = zlib.crc32(text, self._crc)
        packed: bytes = self._deflate.compress(text) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return packed

    def end(self) -> bytes:
        """End the present chunk. Return the bytes to write; none if there is no chunk."""
        if self.size is None:
            return b""
        rest: bytes = self._deflate.flush() + _TRAILER.pack(self._crc, self.size % 2**32)
        self.size = None
        return rest


def is_packed(file: BinaryIO) -> bool:
    """Return whether *file* is compressed."""
    file.seek(0)
    return file.read(len(_GZIP)) == _GZIP


def chunks(file: BinaryIO, start: int = 0) -> Iterator[Chunk]:
    """Yield all chunks that begin at the byte *start* or later.

    They are found by their headers, so damage between two headers does not matter.
    """
    file.seek(start)
    held, at = b"", start  # bytes that may contain the beginning of a header, and their place in the file
    while piece := file.read(_PIECE):
        held += piece
        found = held.find(_BEGINNING)
        while 0 <= found <= len(held) - _HEAD_SIZE:
            (t,) = _TIME.unpack_from(held, found + len(_BEGINNING))
            if math.isfinite(t) and t >= 0:
                yield Chunk(at + found, t)
            found = held.find(_BEGINNING, found + 1)
        kept = len(held) - found if found >= 0 else min(len(held), len(_BEGINNING) - 1)
        at += len(held) - kept
        held = held[len(held) - kept :]
        file.seek(at + kept)


class Member(io.RawIOBase):
    """The text of the gzip member that begins at the byte *offset*, as far as it can be read.

    ``end`` is the byte after the member. It is ``None`` until the member's end was read. If it stays ``None``, the
    member is ``damaged``, or is still being written.
    """

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self._file = file
        self._offset = offset
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._packed = b""
        self.end: int | None = None
        self.damaged = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes of the text into *buffer*. Return their number; 0 where no more can be read."""
        while self.end is None and not self.damaged:
            packed = self._packed or self._more()
            try:
                text = self._inflate.decompress(packed, len(buffer))
            except zlib.error:
                self.damaged = True
                break
            self._packed = self._inflate.unconsumed_tail
            if self._inflate.eof:
                self.end = self._offset - len(self._inflate.unused_data)
            if text:
                buffer[: len(text)] = text
                return len(text)
            if not packed:
                break
        return 0

    def _more(self) -> bytes:
        # Other readers of the same file object may have moved its position.
        self._file.seek(self._offset)
        packed = self._file.read(_AT_ONCE)
        self._offset += len(packed)
        return packed
