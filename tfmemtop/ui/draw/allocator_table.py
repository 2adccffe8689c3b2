"""TensorFlow's allocators as a table: a line for each, and below them the settings that tfmemtop settled. Pure."""

from collections.abc import Sequence

from rich.segment import Segment

from tfmemtop.findings.requests import settled_on, settled_text
from tfmemtop.reports.labels import more_allocators
from tfmemtop.safe import safe
from tfmemtop.state.views import AllocatorRow
from tfmemtop.ui.draw.columns import Column, cells_of, fitting_columns, names
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, DIM, KEY, LAYER, PEAK, Glyphs
from tfmemtop.ui.draw.text import exactly
from tfmemtop.units import UNKNOWN, format_short

_DEVICE: Column[AllocatorRow] = Column("DEVICE", 6, 9, lambda row: row.device, style=BOLD, left=True)
_PID: Column[AllocatorRow] = Column("PID", 7, 7, lambda row: row.pid)
_GPU: Column[AllocatorRow] = Column("GPU", 3, 6, lambda row: row.gpu)
_FIGURES: tuple[Column[AllocatorRow], ...] = (
    Column("IN USE", 7, 9, lambda row: row.in_use, format_short, LAYER["in_use"]),
    Column("PEAK", 7, 8, lambda row: row.peak, format_short, PEAK),
    Column("CACHED", 7, 5, lambda row: row.cached, format_short, LAYER["cached"]),
    Column("POOL", 7, 9, lambda row: row.pool, format_short),
    Column("LIMIT", 7, 8, lambda row: row.limit, format_short),
    Column("GROWTH", 6, 4, lambda row: row.growth, lambda growth: "on" if growth else "off"),
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
    columns = fitting_columns(columns, width - 1, least=2)
    settled = _settled(rows, width, glyphs)[: max(0, height - 1 - len(rows))]
    fitting = max(1, height - 1)
    shown = rows if len(rows) <= fitting else rows[: fitting - 1]
    room = width - sum(map(cells_of, columns)) - 2
    lines: list[Line] = [[Segment(exactly(f" {names(columns)} " + ("ALLOCATOR" if room >= 12 else ""), width), DIM)]]
    lines += [_row(row, columns, room, glyphs) for row in shown]
    if len(shown) < len(rows):
        lines.append([Segment(f" {glyphs.ellipsis} {more_allocators(len(rows) - len(shown))}", DIM)])
    return (lines + settled)[:height]


def _row(row: AllocatorRow, columns: Sequence[Column[AllocatorRow]], room: int, glyphs: Glyphs) -> Line:
    line: Line = [Segment(" ")]
    for column in columns:
        text = column.pad(column.text(row), glyphs)
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
    told = [settled_on(text, where) for text, where in devices.items()]
    return [[Segment(" " + fit(text, width - 1, glyphs), KEY)] for text in told]
