"""Reads the lines of a recording's file, compressed or not, and the place where each ends.

The lines at the beginning of a chunk repeat earlier events, for a reader that begins at this chunk. The line ``so_far``
contains the events that such a reader needs. Events of classes with ``once`` are too large to be repeated: for these,
the line contains their times, and the byte at which the chunk that contains them begins. The line ``outline`` contains
the events of the chunk before, with fewer readings, for a reader that does not need each figure.
"""

import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import msgspec

from tfmemtop.events import Event, Unreadable, decode_event, decoder, encode
from tfmemtop.events.recording.chunks import Member, chunks, is_packed
from tfmemtop.failure import Refusal
from tfmemtop.units import MIB


class RecordingError(Refusal):
    """A recording cannot be written or read."""


def reason_of(error: Exception) -> str:
    """Return the system's message for *error*, or its text if there is none."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def stopped(path: Path | str, why: str) -> RecordingError:
    """Return the error of a recording to *path* that goes no further, because of *why*."""
    return RecordingError(f"recording to {path} has stopped: {why}")


def unwritable(path: Path | str, why: str) -> RecordingError:
    """Return the error of a recording that cannot be begun at *path*, because of *why*."""
    return RecordingError(f"cannot record to {path}: {why}")


def lines_left_out(path: Path, *, damaged: int, unknown: int) -> str:
    """Return how many lines of a recording were left out: damaged lines, and lines that need a newer tfmemtop."""
    kinds = {"damaged": damaged, "unknown": unknown}
    counts = [f"{count} {kind} {'line' if count == 1 else 'lines'}" for kind, count in kinds.items() if count]
    return f"{path}: {' and '.join(counts)} left out"


LONGEST_LINE = 16 * MIB
"""Bytes. A longer line is not an event."""


class Header(msgspec.Struct):
    """The fields of the first line in every format."""

    type: Literal["session"]
    format: int


_decode = decoder(Header)


def header_of(line: bytes) -> Header | None:
    """Return the header in *line*; ``None`` if it is not the first line of a recording."""
    try:
        return _decode(line)
    except Unreadable:
        return None


_PIECE = 256 * 1024  # bytes of text decompressed at once


class Place(NamedTuple):
    """A place in a recording: the byte ``offset`` in its file, and ``skip`` bytes in the text that begins there."""

    offset: int
    skip: int = 0


BEGINNING = Place(0)
DAMAGED = b"?\n"
"""A line that is not an event."""


class Lines:
    """An iterable of the lines with their newlines. Each line is read when it is requested.

    ``place`` is the place after the newest line. If a line is longer than any event, or compressed text breaks off,
    :data:`DAMAGED` is in its place.
    """

    def __init__(self, file: BinaryIO, start: Place = BEGINNING, *, one_chunk: bool = False) -> None:
        """With *one_chunk*, the lines of a compressed recording end with the chunk in which they begin."""
        self._file = file
        self._one_chunk = one_chunk
        self.place = start

    def __iter__(self) -> Iterator[bytes]:
        if is_packed(self._file):
            yield from self._of_members()
        else:
            self._file.seek(self.place.offset)
            for line, size in _lines(self._file):
                self.place = Place(self.place.offset + size)
                yield line

    def _of_members(self) -> Iterator[bytes]:
        following: int | None = self.place.offset
        size = self._file.seek(0, os.SEEK_END)
        while following is not None and following < size:
            offset, skip = self.place = Place(following, self.place.skip if following == self.place.offset else 0)
            member = Member(self._file, offset)
            text = io.BufferedReader(member, _PIECE)
            text.read(skip)
            for line, length in _lines(text):
                skip += length
                self.place = Place(offset, skip)
                yield line
            following = member.end
            if member.damaged:
                yield DAMAGED
            if self._one_chunk:
                return
            if member.damaged:
                following = next((chunk.offset for chunk in chunks(self._file, offset + 1)), None)


def _lines(text: BinaryIO | io.BufferedReader) -> Iterator[tuple[bytes, int]]:
    """Yield each line, and its number of bytes in *text*."""
    while line := text.readline(LONGEST_LINE):
        size = len(line)
        if size == LONGEST_LINE and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = text.readline(LONGEST_LINE)
                size += len(line)
            line = DAMAGED
        yield line, size


SO_FAR, OUTLINE = b"so_far", b"outline"
_BEGINNINGS = (b'{"type":"so_far",', b'{"type":"outline",')


Elsewhere = dict[int, set[float]]
"""Times of events, by the chunk that contains them. The key is the byte in the file at which the chunk begins."""


class Repeated(NamedTuple):
    """The events that a line repeats, and the places of those that are not in it."""

    events: list[Event]
    elsewhere: Elsewhere


class _Repeat(msgspec.Struct):
    type: str
    events: list[msgspec.Raw]
    elsewhere: list[tuple[int, list[float]]] = []


_decode_repeat = decoder(_Repeat)


def repeat(kind: bytes, t: float, events: Iterable[Event], elsewhere: Elsewhere | None = None) -> bytes:
    """Return the line of this *kind*. It repeats *events*, all until *t* seconds, and contains what is *elsewhere*."""
    told = b",".join(encode(event.recorded()) for event in events)
    places = b""
    if elsewhere:
        places = b',"elsewhere":%b' % msgspec.json.encode([(at, sorted(times)) for at, times in elsewhere.items()])
    return b'{"type":"%b","t":%b%b,"events":[%b]}\n' % (kind, encode(t), places, told)


def is_repeat(line: bytes) -> bool:
    """Return whether *line* repeats earlier events, and adds none."""
    return line.startswith(_BEGINNINGS)


def repeated(kind: bytes, line: bytes) -> Repeated | None:
    """Return the content of *line*; ``None`` if the line is not of this *kind*, or is damaged."""
    if not is_repeat(line):
        return None
    try:
        found = _decode_repeat(line)
        if found.type.encode() != kind:
            return None
        events = [decode_event(bytes(text)) for text in found.events]
    except Unreadable:
        return None
    return Repeated(events, {at: set(times) for at, times in found.elsewhere})
