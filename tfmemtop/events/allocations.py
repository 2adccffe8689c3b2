"""The allocations of windows and traces, as they are packed in events: msgpack, compressed by zlib.

What is alike stands in one list, since it compresses better than rows do. The size of unpacked data is limited, so that
a few bytes cannot fill the memory.
"""

import zlib
from typing import Annotated, TypeVar

import msgspec

from tfmemtop.bounds import Many, Number, Size, Some, Text
from tfmemtop.events.damage import Damage, Damaged
from tfmemtop.events.holders import Holding

T = TypeVar("T", bound=msgspec.Struct)

FOREVER = -1
"""The end of an allocation that is not freed in the window."""

MOST_EVENTS = 50_000
"""The most events of a window that one event of the stream describes."""

MOST_OF_PART = 8192
"""The most events in one part of a trace."""

_LARGEST = 2**23  # bytes of what was packed
_LEVEL = 9  # the best compression: at a window a minute, the windows of a day take much space


class WindowAllocations(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The allocations of a window in a pool.

    ``holdings``, ``addresses``, ``begins`` and ``ends`` have an entry for each, in the order of their beginnings: a
    place in ``kinds``, an address, and the events at which it began and ended. The beginning is -1 if it was in use
    before the window, the end is :data:`FOREVER` if it is not freed in the window. ``names`` are the names of
    operations. ``times`` has for each event the µs since the one before, or since the window began.
    """

    names: Annotated[list[Text], Some] = []
    kinds: Annotated[list[Holding], Some] = []
    holdings: Annotated[list[Number], Many] = []
    addresses: Annotated[list[Size], Many] = []
    begins: Annotated[list[Number], Many] = []
    ends: Annotated[list[Number], Many] = []
    times: Annotated[list[Size], msgspec.Meta(max_length=MOST_EVENTS)] = []

    def __post_init__(self) -> None:
        columns = self.holdings, self.addresses, self.begins, self.ends
        if len(set(map(len, columns))) != 1 or not all(0 <= place < len(self.kinds) for place in self.holdings):
            raise ValueError
        if not all(-1 <= event < len(self.times) for event in (*self.begins, *self.ends)):
            raise ValueError


class Call(msgspec.Struct, frozen=True, array_like=True):
    """``thread`` calls a function or a session, just before event ``event`` of the trace, and waits until it has ended.

    Calls are numbered in their order, from 0 on. The number of a call is also that of its run.
    """

    thread: Number
    event: Size


class TraceAllocations(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One part of a trace. Events, allocations, names and calls are counted from 0 over the whole trace.

    Each of ``events`` is a pair. For an allocation: the thread times two, and the requested bytes. For a free: the
    thread times two plus one, and the number of the allocation that is freed. ``operations`` has for each allocation of
    this part the number of its name, -1 if it has none, and ``runs`` the call in whose run it is made, or -1. ``names``
    are those that no earlier part has. ``scratch`` are the numbers of allocations that TensorFlow can do without.
    ``calls`` are those that begin in this part. ``untaken`` are those of ``scratch`` that were to try kernels that were
    not taken.
    """

    names: Annotated[list[Text], msgspec.Meta(max_length=MOST_OF_PART)] = []
    events: Annotated[list[tuple[Size, Size]], Many] = []
    operations: Annotated[list[Number], Many] = []
    runs: Annotated[list[Number], Many] = []
    scratch: Annotated[list[Size], Many] = []
    calls: Annotated[list[Call], Many] = []
    untaken: Annotated[list[Size], Many] = []


def pack(content: msgspec.Struct) -> bytes:
    """Return *content* as bytes. An event has room for ``MOST_PACKED`` of them."""
    return zlib.compress(msgspec.msgpack.encode(content), _LEVEL)


def unpack(packed: bytes, kind: type[T]) -> T:
    """Return what :func:`pack` packed.

    Raises:
        Damaged: *packed* does not contain a valid object of class *kind*.
    """
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(packed, _LARGEST)
        if not unpacker.eof:
            raise Damaged(Damage.TOO_LARGE if len(content) == _LARGEST else Damage.CUT_SHORT)
        return msgspec.msgpack.decode(content, type=kind)
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Damaged(Damage.OTHER_FORM) from None
