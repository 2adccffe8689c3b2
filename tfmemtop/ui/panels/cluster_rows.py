"""The cluster's table: its columns, and how rows are sorted, filtered and drawn. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tfmemtop.cluster.judge import Judged, Kind, natural
from tfmemtop.cluster.text import gpu_name, in_short
from tfmemtop.safe import safe
from tfmemtop.ui.draw.bar import apportion
from tfmemtop.ui.draw.lines import Line, fit, segments
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, ERROR, GOOD, PLAIN, WARNING, Glyphs
from tfmemtop.ui.draw.text import exactly
from tfmemtop.units import GIB, UNKNOWN, format_short

MARKS = 2
_SORTED = Style(bold=True, reverse=True)
_HEAT = ((0.9, ERROR), (0.7, WARNING), (0.0, GOOD))
"""Styles of a bar by its share of the card: the first row whose share is not above the bar's gives the style."""

Key = Callable[[Judged], tuple[object, ...] | float | str | None]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: for a row, ``key`` returns what to sort by and ``text`` what to show, ``None`` if it is unknown.

    When the table is narrow, the column with the lowest ``priority`` is left out first. A column with ``most`` can grow
    to that many cells, if there is room and its texts need it. ``falling``: its natural order begins with the highest.
    """

    name: str
    width: int
    priority: int
    key: Key
    text: Callable[[Judged], str | None]
    left: bool = False
    falling: bool = False
    most: int = 0


def _used(judged: Judged) -> str | None:
    row = judged.row
    if row.used is None and row.total is None:
        return None
    used, whole = format_short(row.used), format_short(row.total)
    if row.used is not None and whole.endswith("G"):
        used = f"{row.used / GIB:.1f}"
    return f"{used}/{whole}"


def _size(value: int | None) -> str | None:
    return None if value is None else format_short(value)


def _gpu(judged: Judged) -> str | None:
    row = judged.row
    return row.gpu or (None if row.uuid else gpu_name(row))


COLUMNS: tuple[Column, ...] = (
    Column("HOST", 10, 90, lambda j: j.row.host, lambda j: j.row.host, left=True, most=24),
    Column("GPU", 3, 80, lambda j: natural(j.row.gpu), _gpu, most=4),
    Column("JOB", 6, 60, lambda j: natural(j.row.job), lambda j: j.row.job, most=12),
    Column("RANK", 4, 70, lambda j: natural(j.row.rank) if j.row.rank else None, lambda j: j.row.rank),
    Column("USER", 7, 30, lambda j: j.row.user or None, lambda j: j.row.user, left=True, most=12),
    Column("CARD", 10, 65, lambda j: j.row.share, lambda j: None, left=True, falling=True, most=32),
    Column("USED", 12, 50, lambda j: j.row.used, _used, falling=True),
    Column("TF-USE", 6, 55, lambda j: j.row.in_use, lambda j: _size(j.row.in_use), falling=True),
    Column("LIMIT", 6, 20, lambda j: j.row.limit, lambda j: _size(j.row.limit), falling=True),
    Column(
        *("UTIL", 4, 45, lambda j: j.row.busy),
        lambda j: None if j.row.busy is None else f"{j.row.busy * 100:.0f}%",
        falling=True,
    ),
    Column("WRONG", 0, 1000, lambda j: 0.0, lambda j: None, left=True),
)
"""The columns in the order in which they stand. The last one takes the room that is left."""

_WRONG_LEAST = 18
_GROWING = ("HOST", "JOB", "USER", "GPU", "CARD")
_WRONG_LIKED = 40
NAMES = tuple(column.name for column in COLUMNS)


@dataclass(frozen=True, slots=True)
class Order:
    """How rows are sorted: by which column, and whether against its natural order."""

    column: str = "WRONG"
    inverted: bool = False

    def step(self, count: int) -> "Order":
        """Return the order by the column *count* places further to the right, in its natural order."""
        return Order(NAMES[(NAMES.index(self.column) + count) % len(NAMES)])

    def by(self, column: str) -> "Order":
        """Return the order by *column*; if that is the present column, in the opposite direction."""
        return Order(column, not self.inverted) if column == self.column else Order(column)

    @property
    def falling(self) -> bool:
        """Whether the highest come first."""
        return COLUMNS[NAMES.index(self.column)].falling != self.inverted


def sort(rows: Sequence[Judged], order: Order) -> list[Judged]:
    """Return *rows*, given with the worst first, in *order*. Unknown values come last in both directions."""
    if order.column == "WRONG":
        return list(reversed(rows)) if order.inverted else list(rows)
    key = COLUMNS[NAMES.index(order.column)].key
    known = [row for row in rows if key(row) is not None]
    known.sort(key=key, reverse=order.falling)  # type: ignore[arg-type]  # one column's keys are of one type
    return known + [row for row in rows if key(row) is None]


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


@dataclass(frozen=True, slots=True)
class ClusterColumns:
    """The columns that fit, each with the cell it begins at and its width."""

    columns: tuple[tuple[Column, int, int], ...]

    def at(self, x: int) -> Column | None:
        """Return the column at cell *x*; the blank before a column belongs to it."""
        return next((c for c, start, width in self.columns if start - 1 <= x < start + width), None)


def longest(rows: Sequence[Judged]) -> dict[str, int]:
    """Return the length of the longest text in each column that can grow with its texts."""
    return {
        column.name: max((len(column.text(row) or "") for row in rows), default=0)
        for column in COLUMNS
        if column.most and column.name != "CARD"
    }


def lay_out(width: int, needed: dict[str, int]) -> ClusterColumns:
    """Return the columns that fit in *width* cells. Room left over goes to columns whose texts need more.

    *needed* is the length of the longest text of a column, by name, as :func:`longest` returns it.
    """
    *shown, last = COLUMNS

    def need() -> int:
        return MARKS + sum(column.width + 1 for column in shown) + _WRONG_LEAST

    while len(shown) > 1 and need() > width:
        shown.remove(min(shown, key=lambda column: column.priority))
    widths = {column.name: column.width for column in shown}
    spare = max(0, width - need() - (_WRONG_LIKED - _WRONG_LEAST))
    for name in _GROWING:
        column = next((one for one in shown if one.name == name), None)
        if column is not None:
            wanted = min(column.most, needed.get(name, column.most))
            more = max(0, min(spare, wanted - column.width))
            widths[name] += more
            spare -= more
    places, x = [], MARKS
    for column in shown:
        places.append((column, x, widths[column.name]))
        x += widths[column.name] + 1
    return ClusterColumns((*places, (last, x, max(0, width - x))))


def header(layout: ClusterColumns, order: Order) -> Line:
    """Return the line with the names of the columns. The column of *order* is marked."""
    line = [Segment(" " * MARKS)]
    for column, _, room in layout.columns:
        style = _SORTED if column.name == order.column else BOLD
        name = column.name[:room]
        pad = Segment(" " * (room - len(name)))
        line += [Segment(name, style), pad] if column.left else [pad, Segment(name, style)]
        line.append(Segment(" "))
    return line[:-1]


def row_line(judged: Judged, layout: ClusterColumns, glyphs: Glyphs, *, chosen: bool) -> Line:
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
            parts.append((_cell(column, judged, room, glyphs) + " ", PLAIN))
    if over is not None:
        return [Segment("".join(text for text, _ in parts), over)]
    return segments(parts)


def _cell(column: Column, judged: Judged, room: int, glyphs: Glyphs) -> str:
    text = column.text(judged) or UNKNOWN
    if not text.isascii() or len(text) > room or not text.isprintable():
        text = fit(safe(text), room, glyphs)
        blanks = " " * (room - cell_len(text))
        return text + blanks if column.left else blanks + text
    return text.ljust(room) if column.left else text.rjust(room)


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
