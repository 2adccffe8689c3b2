"""The lines at the beginning of a chunk. They repeat earlier events, for a reader that begins at this chunk.

The line ``so_far`` contains the events that such a reader needs. Events of classes with ``once`` are too large to be
repeated. For these, the line contains their times, and the byte at which the chunk that contains them begins. The line
``outline`` contains the events of the chunk before, with fewer readings, for a reader that does not need each figure.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tfmemtop.events import Event, Unreadable, decode_event, decoder, encode

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


_decode = decoder(_Repeat)


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
        found = _decode(line)
        if found.type.encode() != kind:
            return None
        events = [decode_event(bytes(text)) for text in found.events]
    except Unreadable:
        return None
    return Repeated(events, {at: set(times) for at, times in found.elsewhere})
