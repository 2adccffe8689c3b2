"""The report on the holders of a pool's memory at the peak of a step, as text and as JSON. Pure."""

import textwrap
from collections.abc import Sequence
from typing import Any

from tfmemtop.findings import who_holds as words
from tfmemtop.safe import safe
from tfmemtop.state.holder_choice import Chosen
from tfmemtop.state.holders import By, Holder, Standing, standing
from tfmemtop.state.step_course import times_us
from tfmemtop.units import aligned, format_bytes

_WIDTH = 96
_NAME = 52  # characters of a row's name


def table(one: Chosen, by: By, others: Sequence[str]) -> list[str]:
    """Return a description of the window, the rows, the largest first, and notes on them, as lines of text."""
    found = standing(one.window, one.hooked, by)
    rows = [_cells(row, by, found.total) for row in found.holders]
    if found.unknown:
        rows.append((words.UNKNOWN, "", *_size(found.unknown, found.total), ""))
    rows.append((words.SUM, "", *_size(found.total, found.total), ""))
    head = (words.HEAD[by], "" if by is By.KIND else words.COLUMNS[0], *words.COLUMNS[1:])
    told = [words.higher(one), words.not_known(found, one), words.before(found), words.rounding(found)]
    notes = [line for text in told if text for line in _wrap(text)]
    return [*_wrap(words.about(one, others)), "", *aligned([head, *rows], {0, 1}), *([""] if notes else []), *notes]


def top_rows(one: Chosen, count: int, indent: str) -> list[str]:
    """Return the first *count* rows of the table by layer, without its headings."""
    found = standing(one.window, one.hooked, By.LAYER)
    rows = [_cells(row, By.LAYER, found.total) for row in found.holders[:count]]
    return [indent + line for line in aligned(rows, {0, 1})]


def _cells(row: Holder, by: By, total: int) -> tuple[str, ...]:
    name = safe(words.row_name(row, by))
    name = name if len(name) <= _NAME else "…" + name[1 - _NAME :]
    kinds = "" if by is By.KIND else words.kinds(row)
    return name, kinds, *_size(row.bytes, total), str(row.count) if row.count else ""


def _size(size: int, total: int) -> tuple[str, str]:
    return format_bytes(size), f"{size / max(1, total):.1%}"


def to_json(one: Chosen, by: By) -> dict[str, Any]:
    """Return the same as keys and values. The rows' bytes and ``unknown`` add up to ``peak``; ``at`` is in seconds."""
    found = standing(one.window, one.hooked, by)
    return {
        "device": one.device,
        "peak": found.total,
        "at": round(one.window.began + _us(one, found) / 1e6, 6),
        "rows": [
            {"name": words.row_name(row, by), "kind": row.kind.value, "bytes": row.bytes, "count": row.count}
            for row in found.holders
        ],
        "unknown": found.unknown,
    }


def _us(one: Chosen, found: Standing) -> int:
    times = times_us(one.window)
    return times[found.at] if 0 <= found.at < len(times) else 0


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(safe(" ".join(text.split())), _WIDTH, break_long_words=False, break_on_hyphens=False)
