"""Reads the fields that the first line of a recording has in every format."""

from typing import Literal

import msgspec

from tfmemtop.events import Unreadable, decoder
from tfmemtop.units import MIB

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
