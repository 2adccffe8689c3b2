"""The cluster's table: its columns, and how rows are sorted, filtered and drawn. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style

from tfmemtop.cluster.judge import Judged, Kind, natural
from tfmemtop.cluster.text import gpu_name, in_short
from tfmemtop.safe import safe
from tfmemtop.ui.draw.bar import apportion
from tfmemtop.ui.draw.columns import Column, Layout, Order, cells_of, fitting_columns, side_by_side
from tfmemtop.ui.draw.lines import Line, fit, segments
from tfmemtop.ui.draw.palette import CHOSEN, DIM, ERROR, GOOD, PLAIN, WARNING, Glyphs
from tfmemtop.ui.draw.text import exactly
from tfmemtop.units import GIB, UNKNOWN, format_short

MARKS = 2
_HEAT = ((0.9, ERROR), (0.7, WARNING), (0.0, GOOD))
"""Styles of a bar by its share of the card: the first row whose share is not above the bar's gives the style."""


def _used(judged: Judged) -> str | None:
    row = judged.row
    if row.used is None and row.total is None:
        return None
    used, whole = format_short(row.used), format_short(row.total)
    if row.used is not None and whole.endswith("G"):
        used = f"{row.used / GIB:.1f}"
    return f"{used}/{whole}"


def _gpu(judged: Judged) -> str | None:
    row = judged.row
    return row.gpu or (None if row.uuid else gpu_name(row))


COLUMNS: tuple[Column[Judged], ...] = (
    Column("HOST", 10, 90, lambda j: j.row.host, safe, left=True, falling=False, most=24),
    Column("GPU", 3, 80, _gpu, safe, key=lambda j: natural(j.row.gpu), falling=False, most=4),
    Column("JOB", 6, 60, lambda j: j.row.job, safe, key=lambda j: natural(j.row.job), falling=False, most=12),
    Column(
        "RANK", 4, 70, lambda j: j.row.rank, key=lambda j: natural(j.row.rank) if j.row.rank else None, falling=False
    ),
    Column("USER", 7, 30, lambda j: j.row.user or None, safe, left=True, falling=False, most=12),
    Column("CARD", 10, 65, lambda j: j.row.share, left=True, most=32),
    Column("USED", 12, 50, _used, key=lambda j: j.row.used),
    Column("TF-USE", 6, 55, lambda j: j.row.in_use, format_short),
    Column("LIMIT", 6, 20, lambda j: j.row.limit, format_short),
    Column("UTIL", 4, 45, lambda j: j.row.busy, "{:.0%}".format),
    Column("WRONG", 0, 1000, lambda j: 0.0, left=True, falling=False),
)
"""The columns in the order in which they stand. The last one takes the room that is left."""

_WRONG_LEAST = 18
_GROWING = ("HOST", "JOB", "USER", "GPU", "CARD")
_WRONG_LIKED = 40


@dataclass(frozen=True, slots=True)
class ClusterOrder(Order):
    """The order of the cluster's table."""

    columns = COLUMNS
    column: str = "WRONG"


def sort(rows: Sequence[Judged], order: Order) -> list[Judged]:
    """Return *rows*, given with the worst first, in *order*. Unknown values come last in both directions."""
    if order.column == "WRONG":
        return list(reversed(rows)) if order.inverted else list(rows)
    return order.sort(rows)


_FIELDS: dict[str, Callable[[Judged], str]] = {
    "job": lambda j: j.row.job,
    "user": lambda j: j.row.user,
    "host": lambda j: j.row.host,
    "rank": lambda j: j.row.rank,
    "gpu": lambda j: f"{j.row.gpu} {j.row.model} {j.row.uuid}",
    "wrong": in_short,
}


def matching(rows: Sequence[Judged], wanted: str) -> list[Judged]:
    """Return the rows that contain each word of *wanted*; case does not matter.

    A word such as ``user:ada`` is searched for in that column only. ``job:`` and ``rank:`` match whole values only.
    """
    found = list(rows)
    for word in wanted.casefold().split():
        name, colon, text = word.partition(":")
        if colon and name in _FIELDS:
            field = _FIELDS[name]
            whole = bool(text) and name in ("job", "rank")  # rank 1 is not rank 12
            values = [(one, field(one).casefold()) for one in found]
            found = [one for one, value in values if (text == value if whole else text in value)]
        else:
            found = [one for one in found if word in _all(one)]
    return found


def _all(judged: Judged) -> str:
    row = judged.row
    return f"{row.host} {row.job} {row.user} {row.model} {row.uuid} {in_short(judged)}".casefold()


def longest(rows: Sequence[Judged]) -> dict[str, int]:
    """Return the length of the longest text in each column that can grow with its texts."""
    return {
        column.name: max((len(column.text(row) or "") for row in rows), default=0)
        for column in COLUMNS
        if column.most and column.name != "CARD"
    }


def lay_out(width: int, needed: dict[str, int]) -> Layout[Judged]:
    """Return the columns that fit in *width* cells. Room left over goes to columns whose texts need more.

    *needed* is the length of the longest text of a column, by name, as :func:`longest` returns it.
    """
    *columns, last = COLUMNS
    room = width - MARKS - _WRONG_LEAST
    shown = fitting_columns(columns, room)
    widths = {column.name: column.width for column in shown}
    spare = max(0, room - sum(map(cells_of, shown)) - (_WRONG_LIKED - _WRONG_LEAST))
    for column in sorted((one for one in shown if one.most), key=lambda one: _GROWING.index(one.name)):
        wanted = min(column.most, needed.get(column.name, column.most))
        more = max(0, min(spare, wanted - column.width))
        widths[column.name] += more
        spare -= more
    taken = MARKS + sum(widths.values()) + len(widths)
    return side_by_side([*((one, widths[one.name]) for one in shown), (last, max(0, width - taken))], MARKS)


def row_line(judged: Judged, layout: Layout[Judged], glyphs: Glyphs, *, chosen: bool) -> Line:
    """Return one row as a line, exactly as wide as *layout*."""
    mark, style = mark_of(judged, glyphs)
    parts: list[tuple[str, Style]] = [(mark + " ", style)]
    over = CHOSEN if chosen else DIM if judged.row.silence is not None else None
    for column, _, room in layout.columns:
        if column.name == "CARD":
            parts += [*heat(judged, room, glyphs), (" ", PLAIN)]
        elif column.name == "WRONG":
            parts.append((exactly(fit(in_short(judged), room, glyphs), room), style))
        else:
            parts.append((column.pad(column.text(judged), glyphs, room) + " ", PLAIN))
    if over is not None:
        return [Segment("".join(text for text, _ in parts), over)]
    return segments(parts)


def mark_of(judged: Judged, glyphs: Glyphs) -> tuple[str, Style]:
    """Return the mark before a row, and the style of its mark and of the column WRONG."""
    worst = judged.worst
    if worst <= Kind.RUNS_OUT_SOON:
        return "!", ERROR
    if worst is Kind.SILENT or judged.row.silence is not None:
        return glyphs.ended, DIM
    return ("!", WARNING) if judged.wrongs else (" ", PLAIN)


def heat(judged: Judged, width: int, glyphs: Glyphs) -> list[tuple[str, Style]]:
    """Return a bar of the card in *width* cells: in use by TensorFlow, otherwise taken, free; then the share taken."""
    row = judged.row
    share, in_use = row.share, row.share_in_use
    if width < 3:
        return [(" " * width, PLAIN)]
    figure = f"{UNKNOWN if share is None else format(share * 100, '.0f') + '%':>4}"
    room = width - len(figure) - 1
    if share is None or room < 3:
        return [(figure.rjust(width), DIM)]
    style = next(style for least, style in _HEAT if share >= least)
    parts = [int((in_use or 0) * 1000), int(max(0.0, share - (in_use or 0)) * 1000), int((1 - share) * 1000)]
    cells = apportion(parts, room) if sum(parts) else [0, 0, room]
    texts = [glyphs.fill[kind] * count for kind, count in zip(("in_use", "rest", "free"), cells, strict=True)]
    used = "".join(texts[:2])
    return [(used, style), (texts[2], DIM), (f" {figure}", style if share >= _HEAT[0][0] else PLAIN)]
