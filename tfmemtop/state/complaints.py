"""TensorFlow's own lines about allocators that ran out, found in what the script writes."""

import re
from collections.abc import Iterator

from tfmemtop.state.model import Complaint

_RAN_OUT = re.compile(
    r"Allocator \(([^)\s]{1,64})\) ran out of memory trying to allocate \S{1,20} "
    r"\(rounded to (\d{1,18})\)\s?requested by op ([^\s:]{1,200})"
)
_RAN_OUT_END = "requested by op"
_LINE = 400  # characters, of which a chunk of output may hold only the last


def complaints(t: float, before: str, text: str) -> Iterator[Complaint]:
    """Those that end in *text*, which was written at *t* seconds, behind *before*."""
    if _RAN_OUT_END in text:
        before = before[-_LINE:]
        for found in _RAN_OUT.finditer(before + text):
            if found.end() > len(before):
                yield Complaint(t, found[1], int(found[2]), found[3])
