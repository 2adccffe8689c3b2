"""The process table: every process on the GPUs or of the run, with the keys of htop and nvitop."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from textual import events as textual_events
from textual.binding import Binding, BindingType
from textual.geometry import clamp
from textual.message import Message

from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.process_rows import ProcessRow, processes
from tfmemtop.state.users import Sum, UserRow, users
from tfmemtop.state.waiting import waiting
from tfmemtop.ui.draw.columns import Column, Layout, Order, figures, fitting_columns, side_by_side
from tfmemtop.ui.draw.lines import Line, width_of
from tfmemtop.ui.draw.palette import CHOSEN, LAYER, UNICODE, Glyphs
from tfmemtop.ui.draw.text import exactly
from tfmemtop.ui.keys import FILTERING, ORDER_KEYS
from tfmemtop.ui.panels.key_bar import Hints
from tfmemtop.ui.panels.process_rows import (
    Cursor,
    TreeRow,
    lay_out,
    matching,
    process_order,
    row_line,
    sort,
    tree,
)
from tfmemtop.ui.panels.row_table import RowTable
from tfmemtop.ui.refusals import HAS_ENDED
from tfmemtop.ui.screens.drawn import Changed
from tfmemtop.units import UNKNOWN, format_short

_USERS: tuple[Column[UserRow], ...] = (
    Column("USER", 12, 10, lambda user: user.user or None, safe, left=True),
    Column("PROCESSES", 9, 8, lambda user: user, lambda user: _processes(user)),
    Column("GPUS", 7, 6, lambda user: user.gpus, lambda gpus: _gpus(gpus)),
    Column("GPU-MEM", 8, 9, lambda user: user.gpu_memory, lambda found: _figure(found, _bytes)),
    Column("%SM", 6, 5, lambda user: user.sm, lambda found: _figure(found, _whole)),
    Column("%CPU", 7, 4, lambda user: user.cpu, lambda found: _figure(found, _whole)),
    Column("HOST-MEM", 8, 7, lambda user: user.rss, lambda found: _figure(found, _bytes)),
    Column("TF-USE", 8, 8, lambda user: user.in_use, lambda found: _figure(found, _bytes)),
)
_BAR_LEAST = 8  # cells


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


class ProcessTable(RowTable["TreeRow | UserRow"]):
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

    def __init__(self, order: Order | None = None, *, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(order or process_order(), glyphs=glyphs, id=id)
        self.as_tree = False
        self.by_user = False
        self.tagged: set[int] = set()
        self._ordering = False  # whether the next key names a column
        self._aside: Hashable = None  # key of the chosen process, while users are shown
        self._rows: list[ProcessRow] | None = None  # of the newest state; None until they are needed
        self._cut = 0

    # What is shown

    @property
    def rows(self) -> list[ProcessRow]:
        """All rows of the newest state, before sorting and filter."""
        if self._rows is None:
            self._rows = processes(self.state)
        return self._rows

    @property
    def mode(self) -> Hints:
        """The keys of the filter while the user types it, and of the columns while the user chooses one to sort by."""
        return FILTERING if self.filter.typing else tuple(ORDER_KEYS.items()) if self._ordering else ()

    @property
    def selected(self) -> ProcessRow | None:
        """The process under the cursor; ``None`` if there is none."""
        found = self.under_cursor
        return found.row if isinstance(found, TreeRow) else None

    def show(self, state: State) -> None:
        self._rows = None
        self.forget()
        super().show(state)

    def in_order(self) -> list[TreeRow | UserRow]:
        if self.by_user:
            return [*users(self.rows)]
        rows = sort(matching(self.rows, self.filter.text), self.order)
        return [*(tree(rows, self.glyphs) if self.as_tree else map(TreeRow, rows))]

    def key_of(self, row: TreeRow | UserRow) -> Hashable:
        return row.key if isinstance(row, TreeRow) else row.user

    def successor(self, keys: Sequence[Hashable]) -> int:
        # A process is found a moment before its GPU is known. So a row of the same pid counts as the same row.
        pids = [key[0] for key in keys if isinstance(key, tuple)]
        wanted = self.chosen[0] if isinstance(self.chosen, tuple) else None
        return pids.index(wanted) if wanted in pids else super().successor(keys)

    def lay_out(self, width: int) -> Layout[Any]:
        if self.by_user:
            return side_by_side([(one, one.width) for one in fitting_columns(_USERS, width - 1)], 1)
        return lay_out(width, bool(self.state.devices), waiting(self.state) is None)

    def row_line(self, row: TreeRow | UserRow, *, chosen: bool) -> Line:
        if isinstance(row, UserRow):
            return self._user_line(row, chosen=chosen and self.has_focus)
        on_it = Cursor.HERE if self.has_focus else Cursor.ELSEWHERE
        tagged = row.row.pid in self.tagged
        cursor = on_it if chosen else Cursor.NONE
        return row_line(row, self.laid_out, self.glyphs, cursor=cursor, tagged=tagged, cut=self._cut)

    def _user_line(self, user: UserRow, *, chosen: bool) -> Line:
        """Return a user's row with a bar, if there is room: the share of the GPU memory that all users hold."""
        line: Line = [Segment(f" {figures((one for one, *_ in self.laid_out.columns), user, self.glyphs)} ")]
        room = self.size.width - width_of(line) - 2
        whole = sum(row.gpu_memory.total or 0 for row in self.arranged if isinstance(row, UserRow))
        if room >= _BAR_LEAST and whole:
            cells = round((user.gpu_memory.total or 0) / whole * room)
            line.append(Segment(" " + self.glyphs.fill["others"] * cells, LAYER["others"]))
        if chosen:
            return [Segment(exactly("".join(segment.text for segment in line), self.size.width), CHOSEN)]
        return line

    def names(self) -> Line:
        if self.by_user:
            return self.laid_out.names(None)
        return self.laid_out.names(self.order, f" (from cell {self._cut})" * bool(self._cut))

    def title(self, shown: int) -> tuple[str, list[str]]:
        if self.by_user:
            return f"Users {shown}", ["Enter shows the processes of one, u all of them"]
        self.tagged &= {row.pid for row in self.rows}
        parts = [f"{len(self.tagged)} tagged"] * bool(self.tagged) + ["tree"] * self.as_tree + [self.sort_title()]
        count = str(len(self.rows)) if shown == len(self.rows) else f"{shown} of {len(self.rows)}"
        return f"Processes {count}", parts

    def why_empty(self) -> str:
        if self.rows:
            return f"no process matches {safe(self.filter.text)!r}; Esc clears the filter"
        readings = [device.reading for device in self.state.devices.values() if device.reading]
        for reading in readings:
            if reading.processes_missing:
                return safe(reading.processes_missing.text)
        if any(reading.outside for reading in readings):
            return "no process of this container holds GPU memory"
        return "no process holds GPU memory" if self.state.devices else "no process"

    def column_at(self, x: int) -> str | None:
        return None if self.by_user else super().column_at(x)

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
            self.order = process_order(column, inverted=key.isupper())
            if self.by_user:
                self.action_users()
            self.rearrange()
        self.post_message(Changed())

    def action_users(self) -> None:
        """Show the sums by user, or the processes again."""
        self.by_user = not self.by_user
        self.chosen, self._aside = (None, self.chosen) if self.by_user else (self._aside, None)
        self.top = 0
        self.rearrange()

    def action_tree(self) -> None:
        self.as_tree = not self.as_tree
        self.rearrange()

    def action_tag(self) -> None:
        if row := self.selected:
            self.tagged ^= {row.pid}
            self.select(self.index + 1)

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
        found = self.under_cursor
        if isinstance(found, UserRow):
            self.action_users()
            self.filter.set(found.user)
        elif found is not None:
            self.post_message(self.Details(found.row.pid))

    def action_attach(self) -> None:
        """Request that the selected process is read from outside."""
        if row := self.selected:
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
