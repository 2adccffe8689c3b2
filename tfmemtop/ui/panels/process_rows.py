"""The process table: its columns, and how rows are sorted, filtered, put into a tree and drawn. Pure."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style

from tfmemtop.safe import safe
from tfmemtop.state.process_rows import ProcessRow
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, GOOD, LAYER, PLAIN, WARNING, Glyphs
from tfmemtop.ui.draw.text import cut_left, exactly
from tfmemtop.units import UNKNOWN, format_duration, format_short

RowKey = tuple[int, int | None]
"""A row's pid and GPU, by which it is found again in the next frame."""

MARKS = 3
"""Cells before the first column: the tag, the kind of process, a blank."""

COMMAND_CELLS = 24
"""Cells kept for the command while other columns can be left out; fewer if the table has less than 80 cells."""

_CHOSEN_ELSEWHERE = Style(reverse=True, dim=True)
_SORTED = Style(bold=True, reverse=True)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: for a row, ``key`` returns what to sort by and ``text`` what to show, ``None`` if it is unknown.

    When the table is narrow, the column with the lowest ``priority`` is left out first. ``falling``: its natural order
    begins with the highest.
    """

    name: str
    width: int
    priority: int
    key: Callable[[ProcessRow], float | str | None]
    text: Callable[[ProcessRow], str | None]
    style: Style = PLAIN
    left: bool = False
    falling: bool = True
    of_gpu: bool = False
    of_pool: bool = False


def _bytes(value: int | None) -> str | None:
    return None if value is None else format_short(value)


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:.0f}"


def _cpu(value: float | None) -> str | None:
    return None if value is None else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def _time(row: ProcessRow) -> str | None:
    if row.elapsed_s is None or row.gone:
        return None
    text = format_duration(row.elapsed_s)
    return text if len(text) <= 8 else text.partition(" ")[0]


COLUMNS: tuple[Column, ...] = (
    Column("GPU", 3, 60, lambda r: r.gpu, lambda r: None if r.gpu is None else str(r.gpu), falling=False, of_gpu=True),
    Column("PID", 7, 100, lambda r: r.pid, lambda r: str(r.pid), falling=False),
    Column("USER", 8, 50, lambda r: r.user, lambda r: safe(r.user) or None, left=True, falling=False),
    Column("GPU-MEM", 7, 80, lambda r: r.gpu_memory, lambda r: _bytes(r.gpu_memory), of_gpu=True),
    Column("%SM", 3, 40, lambda r: r.sm, lambda r: _percent(r.sm), of_gpu=True),
    Column("%GMBW", 5, 10, lambda r: r.bandwidth, lambda r: _percent(r.bandwidth), of_gpu=True),
    Column("%CPU", 5, 55, lambda r: r.cpu, lambda r: _cpu(r.cpu)),
    Column("HOST-MEM", 8, 30, lambda r: r.rss, lambda r: _bytes(r.rss)),
    Column("TF-USE", 7, 90, lambda r: r.in_use, lambda r: _bytes(r.in_use), LAYER["in_use"], of_pool=True),
    Column("TF-POOL", 7, 35, lambda r: r.pool, lambda r: _bytes(r.pool), LAYER["cached"], of_pool=True),
    Column("PEAK", 7, 70, lambda r: r.peak, lambda r: _bytes(r.peak), of_pool=True),
    Column("TIME", 8, 20, lambda r: r.elapsed_s, _time),
    Column("COMMAND", 0, 1000, lambda r: r.program, lambda r: safe(r.program), left=True, falling=False),
)
"""The columns in the order in which they stand. The last one takes the room that is left."""


@dataclass(frozen=True, slots=True)
class Order:
    """How rows are sorted: by which column, and whether against its natural order."""

    column: str = "GPU"
    inverted: bool = False

    def step(self, count: int) -> "Order":
        """Return the order by the column *count* places further to the right, in its natural order."""
        names = [column.name for column in COLUMNS]
        return Order(names[(names.index(self.column) + count) % len(names)])

    def by(self, column: str) -> "Order":
        """Return the order by *column*; if that is the present column, in the opposite direction."""
        return Order(column, not self.inverted) if column == self.column else Order(column)

    @property
    def falling(self) -> bool:
        """Whether the highest come first."""
        return next(column.falling for column in COLUMNS if column.name == self.column) != self.inverted


class TreeRow(NamedTuple):
    """A row with the branches before its command in the tree."""

    row: ProcessRow
    branches: str = ""

    @property
    def key(self) -> RowKey:
        return self.row.pid, self.row.gpu


def sort(rows: Sequence[ProcessRow], order: Order) -> list[ProcessRow]:
    """Return *rows* in *order*. Unknown values come last in both directions; equal ones go by GPU, then memory."""
    key = next(column.key for column in COLUMNS if column.name == order.column)
    ordered = sorted(rows, key=_place)
    known = [row for row in ordered if key(row) is not None]
    # One column's keys are all numbers or all text; sorting is stable, also in reverse.
    known.sort(key=key, reverse=order.falling)  # type: ignore[arg-type]
    return known + [row for row in ordered if key(row) is None]


def _place(row: ProcessRow) -> tuple[bool, int, int, int]:
    return row.gpu is None, row.gpu or 0, -(row.gpu_memory or row.in_use or 0), row.pid


def matching(rows: Sequence[ProcessRow], wanted: str) -> list[ProcessRow]:
    """Return the rows whose pid, user or command contains *wanted*; case does not matter."""
    wanted = wanted.strip().casefold()
    if not wanted:
        return list(rows)
    return [row for row in rows if wanted in f"{row.pid} {row.user} {row.command}".casefold()]


def tree(rows: Sequence[ProcessRow], glyphs: Glyphs) -> list[TreeRow]:
    """Return *rows*, which are sorted, as a tree by parent process. The children of each parent keep their order."""
    by_pid: dict[int, list[ProcessRow]] = {}
    for row in rows:
        by_pid.setdefault(row.pid, []).append(row)
    children: dict[int, list[int]] = {}
    roots = []
    for pid, (row, *_) in by_pid.items():
        if row.ppid in by_pid and row.ppid != pid:
            children.setdefault(row.ppid, []).append(pid)
        else:
            roots.append(pid)
    placed: list[TreeRow] = []
    seen: set[int] = set()
    # Processes whose parents form a ring (a pid was reused) are under no root. So each of them is tried as a start too.
    for start in (*roots, *by_pid):
        waiting = [(start, "", "")]  # pid, branches before its own rows, before its children's
        while waiting:
            pid, own, below = waiting.pop()
            if pid in seen:
                continue
            seen.add(pid)
            first, *others = by_pid[pid]
            placed.append(TreeRow(first, own))
            placed += [TreeRow(row, below) for row in others]
            inner = children.get(pid, [])
            for index in range(len(inner) - 1, -1, -1):
                last = index == len(inner) - 1
                branch = glyphs.last_branch if last else glyphs.branch
                trunk = " " * len(glyphs.trunk) if last else glyphs.trunk
                waiting.append((inner[index], below + branch, below + trunk))
    return placed


@dataclass(frozen=True, slots=True)
class ProcessColumns:
    """The columns that fit, each with the cell it begins at and its width."""

    columns: tuple[tuple[Column, int, int], ...]

    def at(self, x: int) -> Column | None:
        """Return the column at cell *x*; the blank before a column belongs to it."""
        return next((c for c, start, width in self.columns if start - 1 <= x < start + width), None)


def lay_out(width: int, gpus: bool = True, pools: bool = True) -> ProcessColumns:
    """Return the columns that fit in *width* cells. Without GPUs, or pools, those about them are left out first."""
    *shown, command = COLUMNS

    def need(columns: Collection[Column], rest: int) -> int:
        return MARKS + sum(column.width + 1 for column in columns) + rest

    def worth(column: Column) -> int:
        useless = (column.of_gpu and not gpus) or (column.of_pool and not pools)
        return column.priority - (100 if useless else 0)

    while len(shown) > 1 and need(shown, min(COMMAND_CELLS, width * 3 // 10)) > width:
        shown.remove(min(shown, key=worth))
    places = []
    x = MARKS
    for column in shown:
        places.append((column, x, column.width))
        x += column.width + 1
    if width > x:
        places.append((command, x, width - x))
    return ProcessColumns(tuple(places))


def header(layout: ProcessColumns, width: int, order: Order, cut: int) -> Line:
    """Return the line with the columns' names, that of *order* marked. *cut*: cells of the command out of view."""
    line = [Segment(" " * min(width, MARKS))]
    for column, _, room in layout.columns:
        last = column is COLUMNS[-1]
        name = column.name + (f" (from cell {cut})" if last and cut else "")
        style = _SORTED if column.name == order.column else BOLD
        if last:
            label = fit(name, room)
            line += [Segment(label, style), Segment(" " * (room - len(label)))]
        else:
            pad = " " * (room - len(name))
            line += [Segment(name + pad, style)] if column.left else [Segment(pad), Segment(name, style)]
            line.append(Segment(" "))
    return line


class Cursor(Enum):
    """Where the cursor is."""

    NONE = auto()  # not on the row
    HERE = auto()  # on the row, with the focus on the table
    ELSEWHERE = auto()  # on the row, with the focus elsewhere


def row_line(
    placed: TreeRow, layout: ProcessColumns, glyphs: Glyphs, *, cursor: Cursor, tagged: bool, cut: int
) -> Line:
    """Return one row as a line, exactly as wide as *layout*."""
    row = placed.row
    mark, mark_style = _mark(row, glyphs)
    parts: list[tuple[str, Style]] = [("+" if tagged else " ", WARNING), (mark + " ", mark_style)]
    for column, _, room in layout.columns:
        if column is COLUMNS[-1]:
            parts += _command("ended " + row.program if row.gone else row.program, placed.branches, room, cut)
            continue
        text = column.text(row)
        style = column.style
        if text is None:
            text, style = UNKNOWN, DIM
        elif column.name == "PID" and row.of_run:
            style = BOLD
        if not text.isascii() or len(text) > room:
            text = fit(text, room, glyphs)
            text = exactly(text, room) if column.left else text.rjust(room)
        else:
            text = text.ljust(room) if column.left else text.rjust(room)
        parts.append((text + " ", style))
    over = None
    if cursor is not Cursor.NONE:
        over = CHOSEN if cursor is Cursor.HERE else _CHOSEN_ELSEWHERE
    elif row.gone:
        over = DIM
    return _merged(parts, over)


def _mark(row: ProcessRow, glyphs: Glyphs) -> tuple[str, Style]:
    if row.gone:
        return glyphs.ended, DIM
    if row.hook_absence:
        return "!", WARNING
    if row.hooked:
        return glyphs.running, GOOD
    return (glyphs.dot, PLAIN) if row.of_run else (" ", PLAIN)


@lru_cache(maxsize=2048)
def _command(command: str, branches: str, room: int, cut: int) -> tuple[tuple[str, Style], tuple[str, Style]]:
    """Return branches and command in *room* cells. Cached, since commands do not change from frame to frame."""
    branches = exactly(branches, min(len(branches), room))
    return (branches, DIM), (exactly(cut_left(safe(command), cut), room - len(branches)), PLAIN)


def _merged(parts: Sequence[tuple[str, Style]], over: Style | None) -> Line:
    """Return segments of *parts*, joining neighbours of one style; all in the style *over* if there is one."""
    if over is not None:
        return [Segment("".join(text for text, _ in parts), over)]
    line: Line = []
    texts: list[str] = []
    current = parts[0][1]
    for text, style in parts:
        if style is not current and texts:
            line.append(Segment("".join(texts), current))
            texts = []
        current = style
        texts.append(text)
    line.append(Segment("".join(texts), current))
    return line
