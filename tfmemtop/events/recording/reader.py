"""Reads recordings lazily, one line at a time, and leaves out damaged lines."""

import math
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from tfmemtop.events import FORMAT, Event, Session, Unreadable, decode_event, decoder, event_types
from tfmemtop.events.recording.chunks import Chunk, chunks, is_packed
from tfmemtop.events.recording.lines import (
    BEGINNING,
    OUTLINE,
    SO_FAR,
    Lines,
    Place,
    RecordingError,
    header_of,
    is_repeat,
    reason_of,
    repeated,
)
from tfmemtop.events.recording.outline import outlined
from tfmemtop.units import MIB

_NO_RECORDING = "is no tfmemtop recording"
_TAIL = 4 * MIB  # bytes
_LAST = 1000  # lines; it is certain enough that one of them is not damaged
_TAGS = {str(kind.__struct_config__.tag) for kind in event_types()}


class Start(msgspec.Struct, frozen=True):
    """A place to begin to read, at second ``t`` of the session. ``so_far`` are the earlier events that are needed."""

    t: float
    place: Place
    so_far: list[Event]


class Recording(msgspec.Struct, dict=True):
    """A recording whose first line could be read.

    ``damaged`` and ``unknown`` count the lines that the latest pass over :meth:`events` has left out so far: lines that
    could not be decoded, and lines of types that are unknown to this tfmemtop. ``place`` is the place in the file after
    the event that this pass returned last.
    """

    path: Path
    session: Session
    damaged: int = 0
    unknown: int = 0
    place: Place = BEGINNING
    _chunks: list[Chunk] | None = None

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        try:
            with self.path.open("rb") as file:
                yield file
        except OSError as error:
            raise RecordingError(f"cannot read {self.path}: {reason_of(error)}") from error

    def events(self, start: Place = BEGINNING) -> Iterator[Event]:
        """Yield all events in order, the session first, or the events from *start* on.

        Each event is read when it is requested.

        Raises:
            RecordingError: the file can no longer be read.
        """
        self.damaged = self.unknown = 0
        self.place = start
        with self._opened() as file:
            lines = Lines(file, start)
            for line in lines:
                event = self._event(line)
                if event is not None:
                    self.place = lines.place
                    yield event

    def start_before(self, t: float) -> Start | None:
        """Return the last place to begin to read that is not later than *t* seconds.

        ``None`` means the beginning of the file.

        Raises:
            RecordingError: the file can no longer be read.
        """
        with self._opened() as file:
            for chunk in reversed(self._index(file)):
                if chunk.t > t:
                    continue
                lines = Lines(file, Place(chunk.offset))
                told = repeated(SO_FAR, next(iter(lines), b""))
                if told is not None:
                    place = lines.place
                    so_far = told.events
                    for offset, times in told.elsewhere.items():
                        so_far += _of_times(Lines(file, Place(offset), one_chunk=True), times)
                    return Start(chunk.t, place, sorted(so_far, key=lambda event: event.t))
        return None

    def outline(self, start: float, end: float) -> Iterator[Event]:
        """Yield all events in order, but with fewer readings outside *start* to *end* seconds.

        Only a part of a compressed recording is read for this, and ``damaged`` counts the lines in that part.

        Raises:
            RecordingError: the file can no longer be read.
        """
        with self._opened() as file:
            index = self._index(file)
            if index[:1] != [Chunk(0, 0.0)]:  # the beginning of the recording is not in a chunk
                yield from outlined(self.events(), start, end)
                return
            self.damaged = self.unknown = 0
            for chunk, following in zip(index, [*index[1:], None], strict=True):
                apart = following is not None and not (chunk.t <= end and following.t >= start)
                told = _outline_before(file, following) if following is not None and apart else None
                if told is None:
                    found = map(self._event, Lines(file, Place(chunk.offset), one_chunk=True))
                    told = outlined((event for event in found if event is not None), start, end)
                yield from told

    def tail(self, *kinds: type[Event]) -> Iterator[Event]:
        """Yield the events of these *kinds* from the recording's end.

        From a compressed recording: those that its last chunk repeats from before, and then those in that chunk. From a
        plain recording: those in its last megabytes.

        Raises:
            RecordingError: the file can no longer be read.
        """
        start = self.start_before(math.inf)
        wanted = _beginnings(kinds)
        if start is not None:
            yield from (event for event in start.so_far if isinstance(event, kinds))
        with self._opened() as file:
            for line in Lines(file, start.place if start else _near_end(file)):
                if line.startswith(wanted) and (event := _decode(line)) is not None:
                    yield event

    def duration(self) -> float:
        """Return the seconds from the session's beginning to the last event. It is searched from the file's end.

        Raises:
            RecordingError: the file can no longer be read.
        """
        with self._opened() as file:
            index = self._index(file)
            for place in [Place(chunk.offset) for chunk in reversed(index)] or [_near_end(file)]:
                for line in reversed(deque(Lines(file, place, one_chunk=bool(index)), _LAST)):
                    if not is_repeat(line) and (event := _decode(line)) is not None:
                        return event.t
        return self.session.t

    def _index(self, file: BinaryIO) -> list[Chunk]:
        if self._chunks is None:
            self._chunks = list(chunks(file))
        return self._chunks

    def _event(self, line: bytes) -> Event | None:
        if not line.strip() or is_repeat(line):
            return None
        event = _decode(line)
        if event is None and line.endswith(b"\n"):  # without a newline, the writer was killed or still writes the line
            if _is_unknown(line):
                self.unknown += 1
            else:
                self.damaged += 1
        return event


def _beginnings(kinds: Iterable[type[Event]]) -> tuple[bytes, ...]:
    """Return how the lines of these *kinds* begin."""
    return tuple(b'{"type":"%b"' % str(kind.__struct_config__.tag).encode() for kind in kinds)


_ONCE = _beginnings(kind for kind in event_types() if kind.once)


def _of_times(lines: Lines, times: set[float]) -> Iterator[Event]:
    """Yield the events of these *times* with ``once``."""
    for line in lines:
        if line.startswith(_ONCE) and (event := _decode(line)) is not None and event.t in times:
            yield event


def _outline_before(file: BinaryIO, chunk: Chunk) -> Iterable[Event] | None:
    """Return the outline of the chunk before *chunk*; ``None`` if there is none."""
    for _, line in zip(range(2), Lines(file, Place(chunk.offset)), strict=False):
        if (told := repeated(OUTLINE, line)) is not None:
            return told.events
    return None


def _near_end(file: BinaryIO) -> Place:
    """Return the place of the last megabytes in a plain file.

    In a compressed file, return its beginning, since no other place is known.
    """
    if is_packed(file):
        return BEGINNING
    return Place(max(0, file.seek(0, os.SEEK_END) - _TAIL))


def first_line(file: BinaryIO) -> bytes:
    """Return the first line of a recording's file."""
    return next(iter(Lines(file)), b"")


def read(path: str | os.PathLike[str]) -> Recording:
    """Open a recording and read its session; :meth:`Recording.events` reads the rest.

    Raises:
        RecordingError: the file cannot be read, is not a recording, or was written by a newer tfmemtop.
    """
    path = Path(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise RecordingError(f"{path} {_NO_RECORDING}: it is not a regular file")
        with path.open("rb") as file:
            line = first_line(file)
            is_empty = file.seek(0, os.SEEK_END) == 0
    except (OSError, ValueError) as error:
        raise RecordingError(f"cannot read {path}: {reason_of(error)}") from error
    header = header_of(line)
    if header is None:
        raise RecordingError(f"{path} {_NO_RECORDING}: it {'is empty' if is_empty else 'does not begin as one'}")
    if header.format != FORMAT:
        ours = f"this tfmemtop reads format {FORMAT}"
        raise RecordingError(f"{path} has format {header.format}, and {ours}: use the version that wrote it")
    session = _decode(line)
    if not isinstance(session, Session):
        raise RecordingError(f"{path}: the first line, which describes the session, is damaged")
    return Recording(path, session)


class _Typed(msgspec.Struct):
    """The field that every event of every version has."""

    type: str


_decode_typed = decoder(_Typed)


def _decode(line: bytes) -> Event | None:
    try:
        return decode_event(line)
    except Unreadable:
        return None


def _is_unknown(line: bytes) -> bool:
    try:
        return _decode_typed(line).type not in _TAGS
    except Unreadable:
        return False
