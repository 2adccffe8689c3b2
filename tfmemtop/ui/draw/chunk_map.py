"""Draws the map of a pool: turns its cells into lines of glyphs. Pure.

A cell is a slice of the address space; its glyph shows how much of it is in use. Regions stand below each
other, each with its figures on the left. All cells have about the same size, so a region takes room in
proportion to its bytes. If the map is too high, cells are merged; none is left out.
"""

import re
from collections.abc import Callable, Sequence

import msgspec
from rich.segment import Segment

from tfmemtop.state.pool_views import RegionView
from tfmemtop.ui.draw.columns import Column, figures, fitting_columns, names
from tfmemtop.ui.draw.glyphs import HERE, LIMIT_MARK
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, LAYER, PLAIN
from tfmemtop.units import UNKNOWN, format_duration, format_short

_CODES = bytes([ord("0"), *[ord("1")] * 85, *[ord("2")] * 85, *[ord("3")] * 84, ord("4")])
_RUNS = re.compile("0+|[12]+|[34]+")
_STYLES = {"0": DIM, "1": LAYER["cached"], "2": LAYER["cached"], "3": LAYER["in_use"], "4": LAYER["in_use"]}
SHADES = "·░▒▓█"
"""The glyphs of cells, from nothing in use to all in use."""
_SHADED = str.maketrans("01234", SHADES)
_BORDER = DIM


def taken_at(region: RegionView) -> str:
    """Return when a region was taken, as time since the run began: ``00:12``, or ``~00:12`` if that is not sure."""
    if region.taken_s is None:
        return UNKNOWN
    return ("" if region.sure else "~") + clock(region.taken_s)


def clock(seconds: float) -> str:
    """Return *seconds* as ``00:12``, and from an hour on as ``01:00:12``."""
    return format_duration(seconds).removeprefix("00:")


_COLUMNS: tuple[Column[RegionView], ...] = (
    Column("#", 3, 9, lambda region: region.number),
    Column("at", 6, 1, lambda region: region.offset, format_short),
    Column("size", 6, 8, lambda region: region.size, format_short),
    Column("full", 4, 5, lambda region: f"{region.full}%"),
    Column("taken", 9, 4, taken_at),
)
"""The figures before a region's first row."""


class MapRow(msgspec.Struct, frozen=True):
    """A row of the map: ``cells`` of a region, after merging."""

    region: int  # its index
    cells: bytes
    first: bool
    offset: int  # bytes from the region's begin
    start: int = 0  # how many cells of the region come before these, after merging


class Arranged(msgspec.Struct, frozen=True):
    """All rows, also those out of view. One cell on the screen stands for ``merged`` cells of the map."""

    rows: tuple[MapRow, ...]
    merged: int
    cell_bytes: int  # bytes of a cell of the largest region


Label = Callable[[MapRow], Segment]
"""Returns what stands before a row."""


def merge(cells: bytes, count: int) -> bytes:
    """Merge every *count* cells into one. It shows all free, or all in use, only if all of the cells are that."""
    if count <= 1:
        return cells
    merged = bytearray()
    for start in range(0, len(cells), count):
        part = cells[start : start + count]
        total = sum(part)
        merged.append(0 if not total else 255 if total == 255 * len(part) else min(254, max(1, total // len(part))))
    return bytes(merged)


def arrange(regions: Sequence[RegionView], width: int, height: int) -> Arranged:
    """Arrange the *regions* that have cells in rows of at most *width* cells, in *height* rows if that is possible."""
    width = max(1, width)
    counts = [len(region.cells) for region in regions]
    most = max([*counts, 1])
    # Every region takes at least one row. If there are more regions than rows, the map scrolls; nothing more is merged.
    least = sum(1 for count in counts if count)
    count = max(1, sum(counts) // (width * max(1, height, least)))
    while count < most and _rows(counts, width, count) > max(height, least):
        count += 1
    rows: list[MapRow] = []
    for index, region in enumerate(regions):
        cells = merge(region.cells, count)
        for start in range(0, len(cells), width):
            offset = region.size * start * count // len(region.cells)
            rows.append(MapRow(index, cells[start : start + width], start == 0, offset, start))
    largest = max(regions, key=lambda region: len(region.cells), default=None)
    cell_bytes = largest.size * count // len(largest.cells) if largest and largest.cells else 0
    return Arranged(tuple(rows), count, cell_bytes)


def _rows(counts: Sequence[int], width: int, count: int) -> int:
    return sum(-(-count_ // (width * count)) for count_ in counts)


def draw_cells(cells: bytes) -> Line:
    """Return a line with a glyph for each of *cells*."""
    codes = cells.translate(_CODES).decode("ascii")
    return [Segment(run.translate(_SHADED), _STYLES[run[0]]) for run in _RUNS.findall(codes)]


def label_width(width: int) -> int:
    """Return the width of the labels in a map that is *width* cells wide, labels included."""
    return 38 if width >= 96 else 30 if width >= 54 else 12


def _columns(width: int) -> list[Column[RegionView]]:
    return fitting_columns(_COLUMNS, label_width(width) - 1)


def heading(width: int) -> Line:
    """Return the line with the names of the labels' columns."""
    return [Segment(f" {names(_columns(width))}".ljust(label_width(width))[:width], DIM)]


def draw(arranged: Arranged, width: int, seen: range, label: Label, paint: Callable[[MapRow], Line]) -> list[Line]:
    """Return the rows in *seen*, each exactly *width* cells: its *label*, a border, and its cells, by *paint*."""
    border = Segment(LIMIT_MARK, _BORDER)
    rows = arranged.rows[seen.start : seen.stop]
    return [Segment.adjust_line_length([label(row), border, *paint(row)], width) for row in rows]


def region_labels(regions: Sequence[RegionView], width: int, chosen: int | None) -> Label:
    """Return the labels of a map that is *width* cells wide: each region's figures; *chosen* is one's index."""

    def label(row: MapRow) -> Segment:
        room, here = label_width(width) - 1, row.region == chosen
        if not row.first:
            return Segment(" " * room, BOLD if here else PLAIN)
        text = f" {figures(_columns(width), regions[row.region])}".ljust(room)
        return Segment(HERE + text[1:], CHOSEN) if here else Segment(text, PLAIN)

    return label


def offset_label(row: MapRow) -> Segment:
    """Return the label of a row of a single region: its offset in the region."""
    return Segment(f"{'+' + format_short(row.offset):>8}", DIM)


def strip(regions: Sequence[RegionView], width: int, height: int) -> tuple[list[Line], int]:
    """Return the whole pool as one run of cells, in at most *height* lines of *width* cells, and a cell's bytes."""
    cells = b"".join(region.cells for region in regions)
    if not cells or width < 1 or height < 1:
        return [], 0
    count = -(-len(cells) // (width * height))
    merged = merge(cells, count)
    rows = (draw_cells(merged[start : start + width]) for start in range(0, len(merged), width))
    lines = [Segment.adjust_line_length(row, width) for row in rows]
    return lines, sum(region.size for region in regions if region.cells) * count // len(cells)
