"""The lines that a chunk begins with. They repeat what came before, for a reader that begins here.

``so_far`` has the events that such a reader needs. Events that are told once are too large to be repeated: it has their
times, and the byte at which the chunk begins that has them. ``outline`` has the events
of the chunk before, with fewer readings, for a reader that needs what happened and not each figure.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tfmemtop.events import Event, Unreadable, decode_event, decoder, encode

SO_FAR, OUTLINE = b"so_far", b"outline"
_BEGINNINGS = (b'{"type":"so_far",', b'{"type":"outline",')


Elsewhere = dict[int, set[float]]
"""Times of events, by the chunk that has them: the byte in the file at which it begins."""


class Repeated(NamedTuple):
    """What a line repeats, and where more of it is."""

    events: list[Event]
    elsewhere: Elsewhere


class _Repeat(msgspec.Struct):
    type: str
    events: list[msgspec.Raw]
    elsewhere: list[tuple[int, list[float]]] = []


_decode = decoder(_Repeat)


def repeat(kind: bytes, t: float, events: Iterable[Event], elsewhere: Elsewhere | None = None) -> bytes:
    """The line of this *kind* that ends at *t* seconds, repeats *events* and says what is *elsewhere*."""
    told = b",".join(encode(event.recorded()) for event in events)
    places = b""
    if elsewhere:
        places = b',"elsewhere":%b' % msgspec.json.encode([(at, sorted(times)) for at, times in elsewhere.items()])
    return b'{"type":"%b","t":%b%b,"events":[%b]}\n' % (kind, encode(t), places, told)


def is_repeat(line: bytes) -> bool:
    """Whether *line* repeats what came before, and adds nothing."""
    return line.startswith(_BEGINNINGS)


def repeated(kind: bytes, line: bytes) -> Repeated | None:
    """What is told in *line*; ``None`` if it is not of this *kind*, or damaged."""
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
