"""Who holds a pool's memory at the peak of a step, as text and as JSON. Pure."""

import textwrap
from typing import Any

from tfmemtop.state.holder_choice import Chosen
from tfmemtop.state.holders import By, Standing, standing
from tfmemtop.state.step_course import times_us
from tfmemtop.units import format_bytes
from tfmemtop.words import who_holds as words
from tfmemtop.words.safe import safe

_WIDTH = 96
_NAME = 52  # characters of a row's name


def table(one: Chosen, by: By, others: int) -> list[str]:
    """The rows as lines of text, the largest first, below the window they are of."""
    found = standing(one.window, one.hooked, by)
    rows = [
        (safe(words.row_name(row, by)), words.kinds(row), row.bytes, str(row.count) if row.count else "")
        for row in found.holders
    ]
    if found.unknown:
        rows.append((words.UNKNOWN, "", found.unknown, ""))
    rows.append((words.SUM, "", found.total, ""))
    cells = [(words.HEAD[by], *words.COLUMNS)]
    cells += [
        (_short(name), "" if by is By.KIND else kind, format_bytes(size), f"{size / max(1, found.total):.1%}", count)
        for name, kind, size, count in rows
    ]
    if by is By.KIND:
        cells[0] = (words.HEAD[by], "", *words.COLUMNS[1:])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            if width
        ).rstrip()
        for row in cells
    ]
    told = [words.not_known(found, one), words.before(found)]
    notes = [line for text in told if text for line in _wrap(text)]
    return [*_wrap(words.about(one, others)), "", *lines, *([""] if notes else []), *notes]


def to_json(one: Chosen, by: By) -> dict[str, Any]:
    """The same as keys and values; the rows' bytes and ``unknown`` add up to ``peak``, ``at`` is in seconds."""
    found = standing(one.window, one.hooked, by)
    return {
        "device": one.device,
        "peak": found.total,
        "at": round(one.window.began + _us(one, found) / 1e6, 6),
        "rows": [
            {
                "name": words.row_name(row, by),
                "kind": row.kind.value,
                "bytes": row.bytes,
                "count": row.count,
            }
            for row in found.holders
        ],
        "unknown": found.unknown,
    }


def _us(one: Chosen, found: Standing) -> int:
    times = times_us(one.window)
    return times[found.at] if 0 <= found.at < len(times) else 0


def _short(name: str) -> str:
    return name if len(name) <= _NAME else "…" + name[1 - _NAME :]


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(safe(" ".join(text.split())), _WIDTH, break_long_words=False, break_on_hyphens=False)
