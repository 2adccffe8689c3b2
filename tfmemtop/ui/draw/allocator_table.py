"""TensorFlow's allocators as a table: a line for each, and below them the settings that tfmemtop settled. Pure."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style

from tfmemtop.findings.requests import settled_on, settled_text
from tfmemtop.reports.labels import more_allocators
from tfmemtop.safe import safe
from tfmemtop.state.views import AllocatorRow
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, DIM, KEY, LAYER, PEAK, PLAIN, Glyphs
from tfmemtop.ui.draw.text import exactly
from tfmemtop.units import UNKNOWN, format_short


class _Column(NamedTuple):
    name: str
    width: int
    text: Callable[[AllocatorRow], str]
    style: Style
    rank: int  # where there is little room, the column with the highest rank is left out first
    left: bool = False


_DEVICE = _Column("DEVICE", 6, lambda row: row.device, BOLD, 0, left=True)
_PID = _Column("PID", 7, lambda row: str(row.pid), PLAIN, 2)
_GPU = _Column("GPU", 3, lambda row: UNKNOWN if row.gpu is None else str(row.gpu), PLAIN, 3)
_FIGURES = (
    _Column("IN USE", 7, lambda row: format_short(row.in_use), LAYER["in_use"], 0),
    _Column("PEAK", 7, lambda row: format_short(row.peak), PEAK, 1),
    _Column("CACHED", 7, lambda row: format_short(row.cached), LAYER["cached"], 4),
    _Column("POOL", 7, lambda row: format_short(row.pool), PLAIN, 0),
    _Column("LIMIT", 7, lambda row: format_short(row.limit), PLAIN, 1),
    _Column("GROWTH", 6, lambda row: _growth(row.growth), PLAIN, 5),
)


def allocator_table(rows: Sequence[AllocatorRow], width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return a heading and a line for each of *rows*, in at most *height* lines.

    If rows are left out, their last line shows how many. A device's GPU is shown only if a device and its GPU have
    different numbers, the process only if there are several.
    """
    columns = [_DEVICE, *_FIGURES]
    if any(row.gpu is not None and row.device != f"GPU:{row.gpu}" for row in rows):
        columns.insert(1, _GPU)
    if len({row.pid for row in rows}) > 1:
        columns.insert(1, _PID)
    while len(columns) > 2 and _taken(columns) > width:
        columns.remove(max(columns, key=lambda column: column.rank))
    settled = _settled(rows, width, glyphs)[: max(0, height - 1 - len(rows))]
    fitting = max(1, height - 1)
    shown = rows if len(rows) <= fitting else rows[: fitting - 1]
    room = width - _taken(columns) - 1
    head = " ".join(exactly(c.name, c.width) if c.left else f"{c.name:>{c.width}}" for c in columns)
    lines: list[Line] = [[Segment(exactly(f" {head} " + ("ALLOCATOR" if room >= 12 else ""), width), DIM)]]
    lines += [_row(row, columns, room, glyphs) for row in shown]
    if len(shown) < len(rows):
        lines.append([Segment(f" {glyphs.ellipsis} {more_allocators(len(rows) - len(shown))}", DIM)])
    return (lines + settled)[:height]


def _taken(columns: Sequence[_Column]) -> int:
    return 1 + sum(column.width + 1 for column in columns)


def _row(row: AllocatorRow, columns: Sequence[_Column], room: int, glyphs: Glyphs) -> Line:
    line: Line = [Segment(" ")]
    for column in columns:
        text = fit(column.text(row), column.width, glyphs)
        text = exactly(text, column.width) if column.left else text.rjust(column.width)
        line.append(Segment(text + " ", DIM if row.ended else column.style))
    if room >= 4:
        name = safe(row.allocator or UNKNOWN) + (", ended" if row.ended else "")
        line.append(Segment(fit(name, room, glyphs), DIM))
    return line


def _settled(rows: Sequence[AllocatorRow], width: int, glyphs: Glyphs) -> list[Line]:
    """Return a line for each setting that tfmemtop settled, with the devices for which it did so."""
    devices: dict[str, list[str]] = {}
    for row in rows:
        for settled in row.settled:
            devices.setdefault(settled_text(settled), []).append(row.device)
    told = [settled_on(text, names) for text, names in devices.items()]
    return [[Segment(" " + fit(text, width - 1, glyphs), KEY)] for text in told]


def _growth(growth: bool | None) -> str:
    return UNKNOWN if growth is None else "on" if growth else "off"
