"""The first line of a recording, as every format has it."""

from typing import Literal

import msgspec

from tfmemtop.events import Unreadable, decoder

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes; a longer line is no event."""


class Header(msgspec.Struct):
    """What every format's first line has."""

    type: Literal["session"]
    format: int


_decode = decoder(Header)


def header_of(line: bytes) -> Header | None:
    """The header in *line*; ``None`` if it is not the first line of a recording."""
    try:
        return _decode(line)
    except Unreadable:
        return None
