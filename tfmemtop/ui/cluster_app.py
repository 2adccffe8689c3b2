"""The cluster's app: the server, the table, what is wrong with the chosen row, the keys.

The table has one row for each rank or GPU, the worst first. A frame draws only the rows in view.
"""

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import ModalScreen

from tfmemtop.cluster.answers import remark
from tfmemtop.cluster.rows import ClusterRow, Kind, Pool, natural
from tfmemtop.cluster.watch import ClusterWatch, Seen, no_answer, nothing_of
from tfmemtop.safe import safe
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.draw.bar import apportion
from tfmemtop.ui.draw.columns import Column, Layout, Order, cells_of, fitting_columns, side_by_side
from tfmemtop.ui.draw.glyphs import DOT, ENDED, FILL
from tfmemtop.ui.draw.lines import Line, Panel, fit, segments, width_of
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, ERROR, GOOD, PLAIN, TITLE, WARNING
from tfmemtop.ui.draw.text import exactly, wrap
from tfmemtop.ui.keys import Hints, Key, KeyBar
from tfmemtop.ui.panels.row_table import RowTable
from tfmemtop.ui.screen_app import ScreenApp
from tfmemtop.ui.screens import Changed
from tfmemtop.units import GIB, UNKNOWN, format_duration, format_short

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


def _row_line(row: ClusterRow, layout: Layout[ClusterRow], *, chosen: bool) -> Line:
    mark, style = mark_of(row)
    parts: list[tuple[str, Style]] = [(mark + " ", style)]
    for column, _, room in layout.columns:
        if column.name == "CARD":
            parts += [*_bar(row, room), (" ", PLAIN)]
        elif column.name == "WRONG":
            parts.append((exactly(fit(row.wrong, room), room), style))
        else:
            parts.append((column.pad(column.text(row), room) + " ", PLAIN))
    if chosen or row.silence is not None:
        return [Segment("".join(text for text, _ in parts), CHOSEN if chosen else DIM)]
    return segments(parts)


def mark_of(row: ClusterRow) -> tuple[str, Style]:
    """Return the mark before a row, and the style of its mark and of the column WRONG."""
    if row.worst <= Kind.RUNS_OUT_SOON:
        return "!", ERROR
    if row.worst is Kind.SILENT or row.silence is not None:
        return ENDED, DIM
    return ("!", WARNING) if row.wrongs else (" ", PLAIN)


def _bar(row: ClusterRow, width: int) -> list[tuple[str, Style]]:
    """Return a bar of the card in *width* cells: in use by TensorFlow, otherwise taken, free; then the share taken."""
    share, in_use = row.share, row.share_in_use or 0.0
    if share is None:
        return [(f"{UNKNOWN:>4}".rjust(width), DIM)]
    style = next(style for least, style in _HEAT if share >= least)
    parts = [int(part * 1000) for part in (in_use, max(0.0, share - in_use), 1 - share)]
    room = width - 5
    cells = apportion(parts, room) if sum(parts) else [0, 0, room]
    in_use_bar, rest, free = (FILL[kind] * count for kind, count in zip(("in_use", "rest", "free"), cells, strict=True))
    figure = f" {f'{share * 100:.0f}%':>4}"
    return [(in_use_bar + rest, style), (free, DIM), (figure, style if share >= _HEAT[0][0] else PLAIN)]


class ClusterTable(RowTable[ClusterRow]):
    """The table of a cluster. It sends a message when the cursor moves."""

    first_is_a_place = True

    class Moved(Message):
        """Another row may be under the cursor now."""

    def __init__(self, job: str | None) -> None:
        super().__init__(Order(COLUMNS, "WRONG"))
        self.seen = Seen()
        self._job = job

    def look(self, seen: Seen) -> None:
        """Draw *seen*, the newest answer of the server."""
        if seen.rows is not self.seen.rows:
            self.forget()
        self.seen = seen
        self.redraw()

    def in_order(self) -> list[ClusterRow]:
        rows = matching(self.seen.rows, self.wanted)
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
        return _row_line(row, self.laid_out, chosen=chosen)

    def title(self, shown: int) -> tuple[str, list[str]]:
        count = len(self.seen.rows)
        found = f"{count:,}" if shown == count else f"{shown:,} of {count:,}"
        return f"Ranks and GPUs {found}", [self.sort_title()]

    def why_empty(self) -> str:
        if self.seen.rows:
            return f"no row has {safe(self.wanted)}"
        if self.seen.trouble is not None:
            return ""
        return nothing_of(self._job) if self.seen.complete else ASKED

    def changed(self) -> None:
        super().changed()
        self.post_message(self.Moved())


KEYS: tuple[Key, ...] = (
    Key("f1,question_mark,h", "F1", "help", "help"),
    Key("slash,f4", "/", "", "filter"),
    Key("full_stop,comma,f6", ".", "", "sort"),
    Key("I", "I", "", "invert"),
    Key("r,f5", "r", "refresh", "refresh"),
    Key("q,f10", "q", "leave", "quit"),
)
"""The keys of the cluster's screen. Those of a session's screens are in ``ui/keys.py``."""

_CHOSEN, _CHOSEN_SHORT, _ROOMY = 4, 2, 18
"""Lines for what is wrong with the chosen row, title included: on a screen of ``_ROOMY`` lines, and on a lower one."""
_NOTHING_WRONG = "The figures show nothing wrong here."


class ClusterHeader(Panel):
    """Two lines: what is shown, with the time of the figures; then the counts, or why there are no new figures."""

    DEFAULT_CSS = "ClusterHeader { height: 2; }"

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._at = 0.0
        self._told: tuple[str, Style] = ASKED, DIM

    def tell(self, told: str, style: Style, at: float = 0.0) -> None:
        """Draw the line *told*, and the time of the figures, *at* (seconds since 1970)."""
        self._told, self._at = (told, style), at
        self.redraw()

    def build(self, width: int, height: int) -> list[Line]:
        clock = f" {time.strftime('%H:%M:%S', time.localtime(self._at))} " if self._at else ""
        name = fit(f" {self._name}", max(0, width - 30))
        first: Line = [Segment(" tfmemtop cluster ", TITLE), Segment(name, BOLD)]
        blank = " " * max(0, width - width_of(first) - len(clock))
        told, style = self._told
        return [[*first, Segment(blank), Segment(clock, DIM)], [Segment(fit(f" {told}", width), style)]]


class ChosenPanel(Panel):
    """What is wrong with the chosen row, at length."""

    DEFAULT_CSS = "ChosenPanel { height: 4; }"

    def __init__(self, table: ClusterTable) -> None:
        super().__init__()
        self._table = table

    def build(self, width: int, height: int) -> list[Line]:
        row = self._table.under_cursor
        if row is None:
            return []
        told = [*(wrong.sentence for wrong in row.wrongs), *map(remark, row.remarks)] or [_NOTHING_WRONG]
        rows = [line for text in told for line in wrap(text, width - 4, "  ")]
        style = PLAIN if row.wrongs else DIM
        return [self.title_line(width, row.whose, row.model), *([Segment(f"  {line}", style)] for line in rows)]


class ClusterApp(ScreenApp):
    """Shows the GPUs of many machines. It only reads from Prometheus, and changes nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding(key.keys, key.action, show=False) for key in KEYS if key.action]

    def __init__(self, watch: ClusterWatch, options: UiOptions, *, job: str | None) -> None:
        super().__init__(options)
        self.watch_ = watch
        self.seen = Seen()
        self._url = watch.client.address.url
        named = f" {DOT} job {safe(job)}" if job is not None else ""
        self.header = ClusterHeader(safe(self._url.partition("://")[2]) + named)
        self.table = ClusterTable(job)
        self.chosen = ChosenPanel(self.table)
        self.key_bar = KeyBar(self.hints)

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.table
        yield self.chosen
        yield self.key_bar

    def on_mount(self) -> None:
        self.table.focus()
        self.call_after_refresh(self.redraw)
        self.run_worker(self._follow(), name="follow", exit_on_error=True)
        self.set_interval(1.0, self._tick)

    async def _follow(self) -> None:
        async for seen in self.watch_.seen():
            self.seen = seen
            self.redraw()

    def _tick(self) -> None:
        """Redraw the header while there is a trouble, since it shows how long the trouble has lasted."""
        if self.seen.trouble is not None:
            self.redraw()

    def redraw(self) -> None:
        """Draw the newest figures."""
        self._try(self._draw)

    def _draw(self) -> None:
        self.chosen.styles.height = _CHOSEN if self.size.height >= _ROOMY else _CHOSEN_SHORT
        self.header.tell(*self._second_line(self.seen), self.seen.at)
        self.table.look(self.seen)
        self.chosen.redraw()
        self.key_bar.redraw()

    def _second_line(self, seen: Seen) -> tuple[str, Style]:
        """Return the second line of the header, and its style."""
        now = time.time()
        if seen.trouble is not None:
            told = f"{no_answer(self._url, seen.trouble)}, for {format_duration(now - seen.since)}"
            old = f"; the figures are {format_duration(now - seen.answered)} old" if seen.answered else ""
            return told + old, ERROR
        return (seen.totals, PLAIN) if seen.answered else (ASKED, DIM)

    def hints(self) -> Hints:
        """The keys of the last line."""
        return self.table.mode or [(key.shown, key.footer) for key in KEYS if key.footer]

    @on(ClusterTable.Moved)
    def _moved(self) -> None:
        self.chosen.redraw()

    @on(Changed)
    def _changed(self) -> None:
        self.key_bar.redraw()
        self.table.redraw()

    def on_resize(self) -> None:
        self.call_after_refresh(self.redraw)

    def action_refresh(self) -> None:
        self.watch_.hurry()

    def action_help(self) -> None:
        from tfmemtop.ui.screens.help import HelpDialog

        self.push_screen(HelpDialog("cluster"))

    # The end of the app.

    def action_leave(self) -> None:
        self.exit(ScreenOutcome(0))

    async def action_quit(self) -> None:
        self.action_leave()

    def action_help_quit(self) -> None:
        """Handle Ctrl-C: quit, unless a dialog is open. Textual would only show a hint."""
        if not isinstance(self.screen, ModalScreen):
            self.action_leave()
