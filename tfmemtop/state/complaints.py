"""TensorFlow's own lines about allocators that ran out, found in what the script writes."""

import re
from collections.abc import Iterator

from tfmemtop.state.model import Complaint

_RAN_OUT = re.compile(
    r"Allocator \(([^)\s]{1,64})\) ran out of memory trying to allocate (?:"
    r"\S{1,20} \(rounded to (\d{1,18})\)\s?requested by op ([^\s:]{1,200})"
    r"|(\d[\d.]{0,15})(B|[KMGT]iB) with freed_by_count=\d+\. The caller indicates that this is not a failure)"
)
_RAN_OUT_END = re.compile("requested by op|this is not a failure")
_LINE = 400  # characters, of which a chunk of output may hold only the last
_UNITS = {unit: 1024**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))}


def complaints(t: float, before: str, text: str) -> Iterator[Complaint]:
    """Those that end in *text*, which was written at *t* seconds, behind *before*.

    The size of scratch memory TensorFlow writes with two decimals only.
    """
    if _RAN_OUT_END.search(text):
        before = before[-_LINE:]
        for found in _RAN_OUT.finditer(before + text):
            if found.end() <= len(before):
                continue
            allocator, size, operation, scratch, unit = found.groups()
            if size is not None:
                yield Complaint(t, allocator, int(size), operation)
            else:
                yield Complaint(t, allocator, int(float(scratch) * _UNITS[unit]), harmless=True)
