"""Windows of a forged recording: packed fields that no probe has written."""

import zlib
from collections.abc import Iterator

from msgspec.structs import replace

from tests import windows as w
from tfmemtop.events import Holders, Holding
from tfmemtop.events.courses import FOREVER, MOST_EVENTS, Span, pack, pack_holdings, pack_spans

MOST = 2**63 - 1
_ROWS = b'[[0],[0],[null],[""],[""],[1],[1]]'
_LARGE = pack_holdings([Holding(0, [MOST] * 8, "", "", MOST, MOST, 2**31 - 1)])


def forged(t: float) -> Iterator[Holders]:
    """Windows of a step of which one or two fields are forged; each is later than the one before."""
    for number, fields in enumerate(_fields()):
        yield replace(w.step().done(t + number), window=number + 1, **fields)


def _fields() -> Iterator[dict[str, object]]:
    for text in (b"\xff", b'["\xff"]', b"[1]", b"[" * 1000, b'["\\ud800"]', b"[]"):
        yield {"names": zlib.compress(text)}
    for old, new in ((b"[0]", b"[0,1]"), (b"[1]", b"[%d]" % 10**30), (b"[0]", b"[1e300]"), (b'""', b'"\xff"')):
        yield {"holdings": zlib.compress(_ROWS.replace(old, new, 1))}
    yield {"spans": b"no zlib", "times": b"no zlib"}
    yield {"times": b""}
    yield {"times": zlib.compress(b"\xff" * 40)}
    yield {"times": pack([MOST] * 200)}
    yield {"times": pack([1] * 2**21)}
    yield {"peak_at": 2**31 - 1}
    for begin, end in ((0, MOST), (MOST, FOREVER), (MOST_EVENTS - 1, FOREVER)):
        yield {"holdings": _LARGE, "spans": pack_spans([Span(0, MOST, begin, end)]), "times": pack([0] * MOST_EVENTS)}
    # Addresses and times that add up to more than 64 bits, and allocations without end:
    yield {"holdings": _LARGE, "spans": pack([9, *[MOST] * 9, *[0] * 9, *range(9), *[1] * 9, *[0] * 9])}
    yield {"holdings": _LARGE, "spans": pack([1, 0, *[0] * 4 * 2**15]), "times": pack([MOST] * MOST_EVENTS)}
