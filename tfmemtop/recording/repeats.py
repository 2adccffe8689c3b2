"""The lines that a chunk begins with. They repeat what came before, for who does not read that.

``so_far`` has the events which somebody needs who begins to read there. ``outline`` has those of the chunk before, with
fewer readings, for who wants to know what happened and not each figure.
"""

from collections.abc import Iterable

import msgspec

from tfmemtop.events import Event, Unreadable, decode_event, decoder, encode

SO_FAR, OUTLINE = b"so_far", b"outline"
_BEGINNINGS = (b'{"type":"so_far",', b'{"type":"outline",')


class _Repeat(msgspec.Struct):
    type: str
    events: list[msgspec.Raw]


_decode = decoder(_Repeat)


def repeat(kind: bytes, t: float, events: Iterable[Event]) -> bytes:
    """The line of this *kind* that ends at *t* seconds and repeats *events*."""
    told = b",".join(encode(event.recorded()) for event in events)
    return b'{"type":"%b","t":%b,"events":[%b]}\n' % (kind, encode(t), told)


def is_repeat(line: bytes) -> bool:
    """Whether *line* repeats what came before, and adds nothing."""
    return line.startswith(_BEGINNINGS)


def repeated(kind: bytes, line: bytes) -> list[Event] | None:
    """The events in *line*; ``None`` if it is not of this *kind*, or damaged."""
    if not is_repeat(line):
        return None
    try:
        found = _decode(line)
        if found.type.encode() != kind:
            return None
        return [decode_event(bytes(text)) for text in found.events]
    except Unreadable:
        return None
