"""Windows of a forged recording: packed fields that no probe has written."""

import zlib
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from tests import windows as w
from tfmemtop.events import Holders, Holding
from tfmemtop.events.allocations import FOREVER, MOST_EVENTS, WindowAllocations, pack

MOST = 2**63 - 1
_LARGE = [Holding(0, [MOST] * 8, "", "", MOST, MOST, 2**31 - 1)]


def forged(t: float) -> Iterator[Holders]:
    """Windows of a step of which one or two fields are forged; each is later than the one before."""
    for number, fields in enumerate(_fields()):
        yield replace(w.step().done(t + number), window=number + 1, **fields)


def _fields() -> Iterator[dict[str, object]]:
    step = w.step().content()
    for text in (b"\xff", b"\x91\x91\xa1\xff", b"\x91\x01", b"\x91" * 1000, b"\x90", b""):
        yield {"packed": zlib.compress(text)}
    columns = list(msgspec.structs.astuple(step))
    for place, forgery in enumerate(([1], [[1]], [1e300], [-1], [MOST], [MOST], [-5])):
        packed = msgspec.msgpack.encode([*columns[:place], forgery, *columns[place + 1 :]])
        yield {"packed": zlib.compress(packed)}
    yield {"packed": b"no zlib"}
    yield {"packed": pack(replace(step, times=[MOST] * 200))}
    yield {"peak_at": 2**31 - 1}
    for begin, end in ((0, MOST_EVENTS - 1), (-1, FOREVER), (MOST_EVENTS - 1, FOREVER)):
        yield {"packed": pack(_spans(1, begin, end, 0))}
    # Addresses and times that add up to more than 64 bits, and allocations without end:
    yield {"packed": pack(_spans(9, 0, FOREVER, 0))}
    yield {"packed": pack(_spans(2**15, 0, FOREVER, MOST))}


def _spans(count: int, begin: int, end: int, time: int) -> WindowAllocations:
    return WindowAllocations(
        kinds=_LARGE,
        holdings=[0] * count,
        addresses=[MOST] * count,
        begins=[begin] * count,
        ends=[end] * count,
        times=[time] * MOST_EVENTS,
    )
