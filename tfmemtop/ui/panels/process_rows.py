"""The process table: its columns, and how rows are sorted, filtered, put into a tree and drawn. Pure."""

from collections.abc import Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style

from tfmemtop.safe import safe
from tfmemtop.state.process_rows import ProcessRow
from tfmemtop.ui.draw.columns import Column, Layout, Order, cells_of, fitting, side_by_side
from tfmemtop.ui.draw.glyphs import BRANCH, DOT, ENDED, LAST_BRANCH, RUNNING, TRUNK
from tfmemtop.ui.draw.lines import Line, segments
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, GOOD, LAYER, PLAIN, WARNING
from tfmemtop.ui.draw.text import exactly
from tfmemtop.units import format_duration, format_short

RowKey = tuple[int, int | None]
"""A row's pid and GPU, by which it is found again in the next frame."""

MARKS = 3
"""Cells before the first column: the tag, the kind of process, a blank."""

COMMAND_CELLS = 24
"""Cells kept for the command while other columns can be left out; fewer if the table has less than 80 cells."""

_CHOSEN_ELSEWHERE = Style(reverse=True, dim=True)


def _cpu(value: float) -> str:
    return f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def _time(elapsed_s: float) -> str:
    text = format_duration(elapsed_s)
    return text if len(text) <= 8 else text.partition(" ")[0]


_whole = "{:.0f}".format

COLUMNS: tuple[Column[ProcessRow], ...] = (
    Column("GPU", 3, 60, lambda r: r.gpu, falling=False, of="gpu"),
    Column("PID", 7, 100, lambda r: r.pid, falling=False),
    Column("USER", 8, 50, lambda r: r.process.seen.user, safe, left=True, falling=False),
    Column("GPU-MEM", 7, 80, lambda r: r.gpu_memory, format_short, of="gpu"),
    Column("%SM", 3, 40, lambda r: r.sm, _whole, of="gpu"),
    Column("%GMBW", 5, 10, lambda r: r.bandwidth, _whole, of="gpu"),
    Column("%CPU", 5, 55, lambda r: r.cpu, _cpu),
    Column("HOST-MEM", 8, 30, lambda r: r.process.reading.rss, format_short),
    Column("TF-USE", 7, 90, lambda r: r.in_use, format_short, LAYER["in_use"], of="pool"),
    Column("TF-POOL", 7, 35, lambda r: r.pool, format_short, LAYER["cached"], of="pool"),
    Column("PEAK", 7, 70, lambda r: r.peak, format_short, of="pool"),
    Column("TIME", 8, 20, lambda r: None if r.process.gone else r.elapsed_s, _time),
    Column("WORKLOAD", 18, 45, lambda r: r.workload, safe, left=True, falling=False, of="workload"),
    Column("COMMAND", 0, 1000, lambda r: r.program, safe, left=True, falling=False),
)
"""The columns in the order in which they stand. The last one takes the room that is left."""


def process_order(column: str = "GPU", inverted: bool = False) -> Order:
    """Return the order of the process table by *column*."""
    return Order(COLUMNS, column, inverted)


class TreeRow(NamedTuple):
    """A row with the branches before its command in the tree."""

    row: ProcessRow
    branches: str = ""

    @property
    def key(self) -> RowKey:
        return self.row.pid, self.row.gpu


def sort(rows: Sequence[ProcessRow], order: Order) -> list[ProcessRow]:
    """Return *rows* in *order*; equal ones go by GPU, then memory."""
    return order.sort(sorted(rows, key=_place))


def _place(row: ProcessRow) -> tuple[bool, int, int, int]:
    return row.gpu is None, row.gpu or 0, -(row.gpu_memory or row.in_use or 0), row.pid


def matching(rows: Sequence[ProcessRow], wanted: str) -> list[ProcessRow]:
    """Return the rows whose pid, user, workload or command contains *wanted*; case does not matter."""
    wanted = wanted.strip().casefold()
    if not wanted:
        return list(rows)
    return [row for row in rows if wanted in _words(row).casefold()]


def _words(row: ProcessRow) -> str:
    seen = row.process.seen
    inner = " ".join(map(str, seen.inner_pids))
    return f"{row.pid} {inner} {seen.user} {seen.workload.words if seen.workload else ''} {row.command}"


def tree(rows: Sequence[ProcessRow]) -> list[TreeRow]:
    """Return *rows*, which are sorted, as a tree by parent process. The children of each parent keep their order."""
    by_pid: dict[int, list[ProcessRow]] = {}
    for row in rows:
        by_pid.setdefault(row.pid, []).append(row)
    children: dict[int, list[int]] = {}
    roots = []
    for pid, (row, *_) in by_pid.items():
        if row.process.seen.ppid in by_pid and row.process.seen.ppid != pid:
            children.setdefault(row.process.seen.ppid, []).append(pid)
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
                branch = LAST_BRANCH if last else BRANCH
                trunk = " " * len(TRUNK) if last else TRUNK
                waiting.append((inner[index], below + branch, below + trunk))
    return placed


def lay_out(width: int, gpus: bool = True, pools: bool = True, workloads: bool = False) -> Layout[ProcessRow]:
    """Return the columns that fit in *width* cells. Without GPUs, or pools, those about them are left out first.

    Without *workloads* there is no column for them.
    """
    *columns, command = (column for column in COLUMNS if workloads or column.of != "workload")
    useless = {"gpu": not gpus, "pool": not pools}

    def worth(column: Column[ProcessRow]) -> int:
        return column.priority - 100 * useless.get(column.of, False)

    kept = min(COMMAND_CELLS, width * 3 // 10)
    shown = fitting(columns, width - MARKS - kept, cells_of, worth)
    left = width - MARKS - sum(map(cells_of, shown))
    return side_by_side([*((column, column.width) for column in shown), *[(command, left)] * (left > 0)], MARKS)


class Cursor(Enum):
    """Where the cursor is."""

    NONE = auto()  # not on the row
    HERE = auto()  # on the row, with the focus on the table
    ELSEWHERE = auto()  # on the row, with the focus elsewhere


def row_line(placed: TreeRow, layout: Layout[ProcessRow], *, cursor: Cursor, tagged: bool) -> Line:
    """Return one row as a line, exactly as wide as *layout*."""
    row = placed.row
    mark, mark_style = _mark(row)
    parts: list[tuple[str, Style]] = [("+" if tagged else " ", WARNING), (mark + " ", mark_style)]
    for column, _, room in layout.columns:
        if column is COLUMNS[-1]:
            parts += _command("ended " + row.program if row.process.gone else row.program, placed.branches, room)
            continue
        text = column.text(row)
        bold = column.name == "PID" and row.of_run
        style = DIM if text is None else BOLD if bold else column.style
        parts.append((column.pad(text, room) + " ", style))
    over = None
    if cursor is not Cursor.NONE:
        over = CHOSEN if cursor is Cursor.HERE else _CHOSEN_ELSEWHERE
    elif row.process.gone:
        over = DIM
    return _merged(parts, over)


def _mark(row: ProcessRow) -> tuple[str, Style]:
    if row.process.gone:
        return ENDED, DIM
    if row.process.seen.hook_absence:
        return "!", WARNING
    if row.process.hooked:
        return RUNNING, GOOD
    return (DOT, PLAIN) if row.of_run else (" ", PLAIN)


@lru_cache(maxsize=2048)
def _command(command: str, branches: str, room: int) -> tuple[tuple[str, Style], tuple[str, Style]]:
    """Return branches and command in *room* cells. Cached, since commands do not change from frame to frame."""
    branches = exactly(branches, min(len(branches), room))
    return (branches, DIM), (exactly(safe(command), room - len(branches)), PLAIN)


def _merged(parts: Sequence[tuple[str, Style]], over: Style | None) -> Line:
    """Return segments of *parts*, joining neighbours of one style; all in the style *over* if there is one."""
    if over is not None:
        return [Segment("".join(text for text, _ in parts), over)]
    merged: list[tuple[str, Style]] = []
    for text, style in parts:
        if merged and merged[-1][1] is style:  # to compare two styles by value takes as long as to draw the row
            merged[-1] = merged[-1][0] + text, style
        elif text:
            merged.append((text, style))
    return segments(merged)
