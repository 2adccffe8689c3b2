"""The table of a cluster: one row for each rank or GPU, the worst first. A frame draws only the rows in view."""

from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.message import Message

from tfmemtop.cluster.rows import ClusterRow, Kind, Pool, natural
from tfmemtop.cluster.watch import Seen, nothing_of
from tfmemtop.safe import safe
from tfmemtop.ui.draw.bar import apportion
from tfmemtop.ui.draw.columns import Column, Layout, Order, cells_of, fitting_columns, side_by_side
from tfmemtop.ui.draw.lines import Line, fit, segments
from tfmemtop.ui.draw.palette import CHOSEN, DIM, ERROR, GOOD, PLAIN, WARNING, Glyphs
from tfmemtop.ui.draw.text import exactly
from tfmemtop.ui.panels.row_table import RowTable
from tfmemtop.units import GIB, UNKNOWN, format_short

ASKED = "Prometheus is being asked …"
_MARK = 2  # cells of the mark before a row
_WRONG_LEAST = 18  # cells of the last column
_HEAT = ((0.9, ERROR), (0.7, WARNING), (0.0, GOOD))
"""Styles of a bar by its share of the card: the first row whose share is not above the bar's gives the style."""


def _used(row: ClusterRow) -> str | None:
    if row.used is None and row.total is None:
        return None
    used, whole = format_short(row.used), format_short(row.total)
    if row.used is not None and whole.endswith("G"):
        used = f"{row.used / GIB:.1f}"
    return f"{used}/{whole}"


COLUMNS: tuple[Column[ClusterRow], ...] = (
    Column("HOST", 14, 90, lambda row: row.host, safe, left=True, falling=False),
    Column(
        *("GPU", 3, 80, lambda row: row.gpu or (None if row.uuid else row.gpu_name), safe),
        key=lambda row: natural(row.gpu),
        falling=False,
    ),
    Column("JOB", 10, 60, lambda row: row.job, safe, key=lambda row: natural(row.job), falling=False),
    Column("RANK", 4, 70, lambda row: row.rank, key=lambda row: natural(row.rank) if row.rank else None, falling=False),
    Column("USER", 7, 30, lambda row: row.user or None, safe, left=True, falling=False),
    Column("CARD", 16, 65, lambda row: row.share, left=True),
    Column("USED", 12, 50, _used, key=lambda row: row.used),
    Column("TF-USE", 6, 55, lambda row: row.in_use, format_short),
    Column("LIMIT", 6, 20, lambda row: row.limit, format_short),
    Column("UTIL", 4, 45, lambda row: row.busy, "{:.0%}".format),
    Column("WRONG", 0, 1000, lambda row: 0.0, left=True, falling=False),
)
"""The columns in the order in which they stand. The last one takes the room that is left."""

_FIELDS: dict[str, Callable[[ClusterRow], str]] = {
    "job": lambda row: row.job,
    "user": lambda row: row.user,
    "host": lambda row: row.host,
    "rank": lambda row: row.rank,
    "gpu": lambda row: f"{row.gpu} {row.model} {row.uuid}",
    "wrong": lambda row: row.wrong,
}


def matching(rows: Sequence[ClusterRow], wanted: str) -> list[ClusterRow]:
    """Return the rows that contain each word of *wanted*; case does not matter.

    A word such as ``user:ada`` is searched for in that column only. ``job:`` and ``rank:`` match whole values only.
    """
    found = list(rows)
    for word in wanted.casefold().split():
        name, colon, text = word.partition(":")
        if colon and text and name in ("job", "rank"):  # rank 1 is not rank 12
            found = [row for row in found if _FIELDS[name](row).casefold() == text]
        elif colon and name in _FIELDS:
            found = [row for row in found if text in _FIELDS[name](row).casefold()]
        else:
            found = [row for row in found if word in " ".join(of(row) for of in _FIELDS.values()).casefold()]
    return found


def _row_line(row: ClusterRow, layout: Layout[ClusterRow], glyphs: Glyphs, *, chosen: bool) -> Line:
    mark, style = mark_of(row, glyphs)
    parts: list[tuple[str, Style]] = [(mark + " ", style)]
    for column, _, room in layout.columns:
        if column.name == "CARD":
            parts += [*_bar(row, room, glyphs), (" ", PLAIN)]
        elif column.name == "WRONG":
            parts.append((exactly(fit(row.wrong, room, glyphs), room), style))
        else:
            parts.append((column.pad(column.text(row), glyphs, room) + " ", PLAIN))
    if chosen or row.silence is not None:
        return [Segment("".join(text for text, _ in parts), CHOSEN if chosen else DIM)]
    return segments(parts)


def mark_of(row: ClusterRow, glyphs: Glyphs) -> tuple[str, Style]:
    """Return the mark before a row, and the style of its mark and of the column WRONG."""
    if row.worst <= Kind.RUNS_OUT_SOON:
        return "!", ERROR
    if row.worst is Kind.SILENT or row.silence is not None:
        return glyphs.ended, DIM
    return ("!", WARNING) if row.wrongs else (" ", PLAIN)


def _bar(row: ClusterRow, width: int, glyphs: Glyphs) -> list[tuple[str, Style]]:
    """Return a bar of the card in *width* cells: in use by TensorFlow, otherwise taken, free; then the share taken."""
    share, in_use = row.share, row.share_in_use or 0.0
    if share is None:
        return [(f"{UNKNOWN:>4}".rjust(width), DIM)]
    style = next(style for least, style in _HEAT if share >= least)
    parts = [int(part * 1000) for part in (in_use, max(0.0, share - in_use), 1 - share)]
    room = width - 5
    cells = apportion(parts, room) if sum(parts) else [0, 0, room]
    in_use_bar, rest, free = (
        glyphs.fill[kind] * count for kind, count in zip(("in_use", "rest", "free"), cells, strict=True)
    )
    figure = f" {f'{share * 100:.0f}%':>4}"
    return [(in_use_bar + rest, style), (free, DIM), (figure, style if share >= _HEAT[0][0] else PLAIN)]


class ClusterTable(RowTable[ClusterRow]):
    """The table of a cluster. It sends a message when the cursor moves."""

    first_is_a_place = True

    class Moved(Message):
        """Another row may be under the cursor now."""

    def __init__(self, job: str | None, *, glyphs: Glyphs) -> None:
        super().__init__(Order(COLUMNS, "WRONG"), glyphs=glyphs)
        self.seen = Seen()
        self._job = job

    def look(self, seen: Seen) -> None:
        """Draw *seen*, the newest answer of the server."""
        if seen.rows is not self.seen.rows:
            self.forget()
        self.seen = seen
        self.redraw()

    def in_order(self) -> list[ClusterRow]:
        rows = matching(self.seen.rows, self.filter.text)
        if self.order.column == "WRONG":  # in this order they come
            return rows[::-1] if self.order.inverted else rows
        return self.order.sort(rows)

    def key_of(self, row: ClusterRow) -> Pool:
        return row.key

    def lay_out(self, width: int) -> Layout[ClusterRow]:
        *columns, last = COLUMNS
        shown = fitting_columns(columns, width - _MARK - _WRONG_LEAST)
        left = max(0, width - _MARK - sum(map(cells_of, shown)))
        return side_by_side([*((one, one.width) for one in shown), (last, left)], _MARK)

    def row_line(self, row: ClusterRow, *, chosen: bool) -> Line:
        return _row_line(row, self.laid_out, self.glyphs, chosen=chosen)

    def title(self, shown: int) -> tuple[str, list[str]]:
        count = len(self.seen.rows)
        found = f"{count:,}" if shown == count else f"{shown:,} of {count:,}"
        return f"Ranks and GPUs {found}", [self.sort_title()]

    def why_empty(self) -> str:
        if self.seen.rows:
            return f"no row has {safe(self.filter.text)}"
        if self.seen.trouble is not None:
            return ""
        return nothing_of(self._job) if self.seen.complete else ASKED

    def changed(self) -> None:
        super().changed()
        self.post_message(self.Moved())
