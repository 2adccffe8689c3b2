"""What all events have in common."""

import msgspec

from tfmemtop.bounds import Seconds

FORMAT = 1
"""Version of the stream's format; a reader refuses a stream with a higher one."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all events."""

    t: Seconds
