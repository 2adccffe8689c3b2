"""The process table: every process on the GPUs or of the run, with the keys of htop and nvitop."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events as textual_events
from textual.binding import Binding, BindingType
from textual.geometry import clamp
from textual.message import Message

from tfmemtop.reports import labels as panels
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.process_rows import ProcessRow, processes
from tfmemtop.state.users import Sum, UserRow, users
from tfmemtop.state.waiting import waiting
from tfmemtop.ui.draw.columns import Column, Layout, cells_of, figures, fitting_columns, names
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, LAYER, UNICODE, Glyphs
from tfmemtop.ui.draw.text import exactly
from tfmemtop.ui.keys import COLUMN_KEYS, FILTERING, ORDER_KEYS
from tfmemtop.ui.panels.key_bar import Hints
from tfmemtop.ui.panels.process_rows import (
    Cursor,
    ProcessOrder,
    RowKey,
    TreeRow,
    lay_out,
    matching,
    row_line,
    sort,
    tree,
)
from tfmemtop.ui.panels.row_table import RowTable
from tfmemtop.ui.refusals import HAS_ENDED
from tfmemtop.ui.screens.drawn import Changed
from tfmemtop.units import UNKNOWN, format_short

_USER = 12  # cells


_COLUMNS: tuple[Column[UserRow], ...] = (
    Column("PROCESSES", 9, 8, lambda user: user, lambda user: _processes(user)),
    Column("GPUS", 7, 6, lambda user: user.gpus, lambda gpus: _gpus(gpus)),
    Column("GPU-MEM", 8, 9, lambda user: user.gpu_memory, lambda found: _figure(found, _bytes)),
    Column("%SM", 6, 5, lambda user: user.sm, lambda found: _figure(found, _whole)),
    Column("%CPU", 7, 4, lambda user: user.cpu, lambda found: _figure(found, _whole)),
    Column("HOST-MEM", 8, 7, lambda user: user.rss, lambda found: _figure(found, _bytes)),
    Column("TF-USE", 8, 8, lambda user: user.in_use, lambda found: _figure(found, _bytes)),
)
_BAR_LEAST = 8


def user_lines(found: Sequence[UserRow], width: int, seen: range, chosen: int, glyphs: Glyphs) -> list[Line]:
    """Return a heading and the rows in *seen*; the row *chosen* is highlighted.

    Each row has a bar, if there is room: the user's share of the GPU memory that all users hold.
    """
    columns = fitting_columns(_COLUMNS, width - _USER - 2)
    room = width - _USER - 4 - sum(map(cells_of, columns))
    head = exactly(" USER", _USER + 2) + names(columns)
    lines: list[Line] = [[Segment(exactly(head, width), BOLD)]]
    whole = sum(user.gpu_memory.total or 0 for user in found)
    for index in seen:
        user = found[index]
        name = exactly(fit(safe(user.user) or UNKNOWN, _USER, glyphs), _USER)
        line = [Segment(f" {name} "), Segment(figures(columns, user, glyphs) + " ")]
        if room >= _BAR_LEAST and whole:
            cells = round((user.gpu_memory.total or 0) / whole * room)
            line.append(Segment(" " + glyphs.fill["others"] * cells, LAYER["others"]))
        if index == chosen:
            text = "".join(segment.text for segment in line)
            line = [Segment(exactly(text, width), CHOSEN)]
        lines.append(line)
    return lines


def _processes(user: UserRow) -> str:
    """Return how many processes are running; if there are none, how many have ended."""
    return str(user.processes) if user.processes else f"{user.ended} ended"


def _figure(found: Sum, text: Callable[[float], str]) -> str:
    """Return a sum as text. Before it, ``>`` means that some parts are unknown, so that it is at least so much."""
    return UNKNOWN if found.total is None else (">" if found.partial else "") + text(found.total)


def _bytes(value: float) -> str:
    return format_short(int(value))


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _gpus(indices: set[int]) -> str:
    """Return the GPUs as ``0,1`` or ``0-7``; if that is longer than 7 cells, how many they are."""
    listed = sorted(indices)
    if not listed:
        return UNKNOWN
    if len(listed) > 2 and listed[-1] - listed[0] == len(listed) - 1:
        return f"{listed[0]}-{listed[-1]}"
    text = ",".join(map(str, listed))
    return text if len(text) <= 7 else f"{len(listed)}"


_CUT_STEP = 8
_CUT_MOST = 4096


class ProcessTable(RowTable[ProcessOrder]):
    """The process table. It sends messages for what the user wants, and does nothing to a process itself."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "cut(-1)", "command to the left", show=False),
        Binding("right", "cut(1)", "command to the right", show=False),
        Binding("o", "order", "sort by the column of the next key", show=False),
        Binding("u", "users", "sum by user", show=False),
        Binding("f5,t", "tree", "tree", show=False),
        Binding("space", "tag", "tag", show=False),
        Binding("U", "untag", "untag all", show=False),
        Binding("enter", "details", "details", show=False),
        Binding("a", "attach", "read it from outside", show=False),
        Binding("f9,k", "signal", "send a signal", show=False),
        Binding("escape", "clear", "clear filter and tags", show=False),
    ]

    class Details(Message):
        """The user wants the details of process *pid*."""

        def __init__(self, pid: int) -> None:
            super().__init__()
            self.pid = pid

    class Attach(Message):
        """The user wants to have process *pid*, which tfmemtop did not start, read from outside."""

        def __init__(self, pid: int) -> None:
            super().__init__()
            self.pid = pid

    class Signal(Message):
        """The user wants to send a signal to *pids*: the tagged ones, or the selected one."""

        def __init__(self, pids: list[int]) -> None:
            super().__init__()
            self.pids = pids

    def __init__(self, order: ProcessOrder | None = None, *, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(order or ProcessOrder(), glyphs=glyphs, id=id)
        self.as_tree = False
        self.by_user = False
        self._user = 0  # index of the user under the cursor
        self._ordering = False  # whether the next key names a column
        self.tagged: set[int] = set()
        self._rows: list[ProcessRow] | None = None  # of the newest state; None until they are needed
        self._placed: list[TreeRow] | None = None  # those, filtered and sorted; None until they are needed
        self._chosen: RowKey | None = None  # None: the first row, whichever that is
        self._cut = 0
        self._layout: Layout[ProcessRow] = Layout()

    # What is shown

    @property
    def rows(self) -> list[ProcessRow]:
        """All rows of the newest state, before sorting and filter."""
        if self._rows is None:
            self._rows = processes(self.state)
        return self._rows

    @property
    def placed(self) -> list[TreeRow]:
        """The rows as they stand in the table: filtered, sorted, and put into a tree if the user wants one."""
        if self._placed is None:
            rows = sort(matching(self.rows, self.filter.text), self.order)
            self._placed = tree(rows, self.glyphs) if self.as_tree else [TreeRow(row) for row in rows]
            self._find_chosen()
        return self._placed

    @property
    def mode(self) -> Hints:
        """The keys of the filter while the user types it, and of the columns while the user chooses one to sort by."""
        return FILTERING if self.filter.typing else COLUMN_KEYS if self._ordering else ()

    @property
    def selected(self) -> ProcessRow | None:
        """The row under the cursor; ``None`` if there are no rows."""
        placed = self.placed
        return placed[self._index].row if placed else None

    def show(self, state: State) -> None:
        self._rows = self._placed = None
        super().show(state)

    def build(self, width: int, height: int) -> list[Line]:
        if self.by_user:
            return self._build_users(width, height)
        placed = self.placed
        self._layout = lay_out(width, bool(self.state.devices), waiting(self.state) is None)
        lines = [
            self._title(width, len(placed)),
            self._layout.names(self.order, f" (from cell {self._cut})" * bool(self._cut)),
        ]
        for index in self.rows_in_view(len(placed), height):
            item = placed[index]
            on_it = Cursor.HERE if self.has_focus else Cursor.ELSEWHERE
            cursor = on_it if index == self._index else Cursor.NONE
            tagged = item.row.pid in self.tagged
            lines.append(row_line(item, self._layout, self.glyphs, cursor=cursor, tagged=tagged, cut=self._cut))
        if not placed:
            lines.append([Segment(fit(f"   {self._why_empty()}", width, self.glyphs), DIM)])
        return lines

    @property
    def users(self) -> list[UserRow]:
        """All users of the newest state, with the sums over their processes."""
        return users(self.rows)

    def _build_users(self, width: int, height: int) -> list[Line]:
        found = self.users
        self._user = clamp(self._user, 0, max(0, len(found) - 1))
        title = self.title_line(width, f"Users {len(found)}", panels.BY_USER, chosen=self.has_focus)
        chosen = self._user if self.has_focus else -1
        return [title, *user_lines(found, width, self.rows_in_view(len(found), height), chosen, self.glyphs)]

    def _title(self, width: int, shown: int) -> Line:
        count = str(len(self.rows)) if shown == len(self.rows) else f"{shown} of {len(self.rows)}"
        parts = []
        self.tagged &= {row.pid for row in self.rows}
        if self.tagged:
            parts.append(f"{len(self.tagged)} tagged")
        if self.as_tree:
            parts.append("tree")
        parts.append(f"sort {self.order.column} {self.glyphs.down if self.order.falling else self.glyphs.up}")
        title = f"Processes {count}"
        return self.title_line(width, title, self.title_parts(width - len(title) - 16, parts), chosen=self.has_focus)

    def _why_empty(self) -> str:
        if self.rows:
            return panels.no_match(safe(self.filter.text))
        readings = [device.reading for device in self.state.devices.values() if device.reading]
        for reading in readings:
            if reading.processes_missing:
                return safe(reading.processes_missing.text)
        if any(reading.outside for reading in readings):
            return panels.NO_GPU_PROCESS_HERE
        return panels.NO_GPU_PROCESS if self.state.devices else panels.NO_PROCESS

    # The cursor

    def _find_chosen(self) -> None:
        """Set the index to where the chosen row is now. If that row has gone, its neighbour becomes the chosen one."""
        assert self._placed is not None
        keys = [item.key for item in self._placed]
        if self._chosen is None:
            self._index = 0
            return
        if self._chosen in keys:
            self._index = keys.index(self._chosen)
            return
        # A process is found a moment before its GPU is known. So a row of the same pid counts as the same row.
        same = next((i for i, (pid, _) in enumerate(keys) if pid == self._chosen[0]), None)
        self._index = same if same is not None else clamp(self._index, 0, max(0, len(keys) - 1))
        self._chosen = keys[self._index] if keys else self._chosen

    @property
    def count(self) -> int:
        return len(self.users) if self.by_user else len(self.placed)

    @property
    def at(self) -> int:
        return self._user if self.by_user else self._index

    def column_at(self, x: int) -> str | None:
        return None if self.by_user else self._layout.at(x)

    def select(self, index: int) -> None:
        if self.by_user:
            self._user = clamp(index, 0, max(0, len(self.users) - 1))
        elif self.placed:
            self._index = clamp(index, 0, len(self.placed) - 1)
            self._chosen = self.placed[self._index].key
        self._follow = True
        self.redraw()

    def rearrange(self) -> None:
        self._placed = None
        self._follow = True
        self.redraw()

    def action_cut(self, count: int) -> None:
        self._cut = clamp(self._cut + count * _CUT_STEP, 0, _CUT_MOST)
        self.redraw()

    # Order, filter, tree, tags

    def action_order(self) -> None:
        """Let the next key choose the column to sort by, as in nvitop. Its capital sorts in the other direction."""
        self._ordering = True
        self.post_message(Changed())

    def _order_by(self, key: str) -> None:
        self._ordering = False
        column = ORDER_KEYS.get(key.lower())
        if column:
            self.by_user = False
            self.order = ProcessOrder(column, inverted=key.isupper())
            self.rearrange()
        self.post_message(Changed())

    def action_users(self) -> None:
        """Show the sums by user, or the processes again."""
        self.by_user = not self.by_user
        self._user = self.top = 0
        self.rearrange()

    def action_tree(self) -> None:
        self.as_tree = not self.as_tree
        self.rearrange()

    def action_tag(self) -> None:
        if self.by_user:
            return
        if row := self.selected:
            self.tagged ^= {row.pid}
            self.select(self._index + 1)

    def action_untag(self) -> None:
        self.tagged.clear()
        self.redraw()

    def action_clear(self) -> None:
        """Clear the filter; without one, the tags. If the sums by user are shown, show the processes again instead."""
        if self.by_user:
            self.action_users()
        elif self.filter.text:
            self.filter.set("")
        else:
            self.action_untag()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        ordering = self._ordering and character is not None and character.isprintable()
        return ordering or super().check_consume_key(key, character)

    def on_key(self, event: textual_events.Key) -> None:
        if self._ordering:
            self._order_by(event.character or "")
            event.stop()
            event.prevent_default()

    def on_blur(self) -> None:
        if self._ordering:
            self._ordering = False
            self.post_message(Changed())

    # Requests to the app

    def action_open(self) -> None:
        self.action_details()

    def action_details(self) -> None:
        """Open the details of the selected process; if a user is selected, show that user's processes."""
        if self.by_user:
            if found := self.users[self._user : self._user + 1]:
                self.action_users()
                self.filter.set(found[0].user)
        elif row := self.selected:
            self.post_message(self.Details(row.pid))

    def action_attach(self) -> None:
        """Request that the selected process is read from outside."""
        if not self.by_user and (row := self.selected):
            self.post_message(self.Attach(row.pid))

    def action_signal(self) -> None:
        if self.by_user:
            return
        ended = {row.pid for row in self.rows if row.gone}
        pids = sorted(self.tagged) if self.tagged else [row.pid] if (row := self.selected) else []
        alive = [pid for pid in pids if pid not in ended]
        if alive:
            self.post_message(self.Signal(alive))
        elif pids:
            self.notify(HAS_ENDED, timeout=3)
