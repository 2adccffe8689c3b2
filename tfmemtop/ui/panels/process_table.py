"""The process table: every process on the GPUs or of the run, with the keys of htop and nvitop."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events as textual_events
from textual.binding import Binding, BindingType
from textual.message import Message

from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.process_rows import ProcessRow, processes
from tfmemtop.state.waiting import waiting
from tfmemtop.ui.draw.columns import Layout, Order
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.keys import ORDER_KEYS, Hints
from tfmemtop.ui.panels.process_rows import Cursor, TreeRow, lay_out, matching, process_order, row_line, sort, tree
from tfmemtop.ui.panels.row_table import RowTable
from tfmemtop.ui.screens import Changed


class ProcessTable(RowTable[TreeRow]):
    """The process table. It sends messages for what the user wants, and does nothing to a process itself."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "order", "sort by the column of the next key", show=False),
        Binding("f5", "tree", "tree", show=False),
        Binding("space", "tag", "tag", show=False),
        Binding("U", "untag", "untag all", show=False),
        Binding("enter", "open", "details", show=False),
        Binding("a", "attach", "read it from outside", show=False),
        Binding("f9,k", "signal", "send a signal", show=False),
        Binding("escape", "clear", "clear filter and tags", show=False),
    ]

    @dataclass
    class Details(Message):
        """The user wants the details of process ``pid``."""

        pid: int

    @dataclass
    class Attach(Message):
        """The user wants to have process ``pid``, which tfmemtop did not start, read from outside."""

        pid: int

    @dataclass
    class Signal(Message):
        """The user wants to send a signal to ``pids``: the tagged ones, or the selected one."""

        pids: list[int]

    def __init__(self, order: Order | None = None) -> None:
        super().__init__(order or process_order())
        self.as_tree = False
        self.tagged: set[int] = set()
        self._ordering = False  # whether the next key names a column
        self._rows: list[ProcessRow] | None = None  # of the newest state; None until they are needed

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
        return super().mode or (tuple(ORDER_KEYS.items()) if self._ordering else ())

    @property
    def selected(self) -> ProcessRow | None:
        """The process under the cursor; ``None`` if there is none."""
        return self.under_cursor.row if self.under_cursor else None

    def show(self, state: State) -> None:
        self._rows = None
        self.forget()
        super().show(state)

    def in_order(self) -> list[TreeRow]:
        rows = sort(matching(self.rows, self.wanted), self.order)
        return tree(rows) if self.as_tree else list(map(TreeRow, rows))

    def key_of(self, row: TreeRow) -> Hashable:
        return row.key

    def successor(self, keys: Sequence[Hashable]) -> int:
        # A process is found a moment before its GPU is known. So a row of the same pid counts as the same row.
        pids = [key[0] for key in keys if isinstance(key, tuple)]
        wanted = self.chosen[0] if isinstance(self.chosen, tuple) else None
        return pids.index(wanted) if wanted in pids else super().successor(keys)

    def lay_out(self, width: int) -> Layout[ProcessRow]:
        workloads = any(row.workload for row in self.rows)
        return lay_out(width, bool(self.state.devices), waiting(self.state) is None, workloads)

    def row_line(self, row: TreeRow, *, chosen: bool) -> Line:
        on_it = Cursor.HERE if self.has_focus else Cursor.ELSEWHERE
        tagged = row.row.pid in self.tagged
        cursor = on_it if chosen else Cursor.NONE
        return row_line(row, self.laid_out, cursor=cursor, tagged=tagged)

    def title(self, shown: int) -> tuple[str, list[str]]:
        self.tagged &= {row.pid for row in self.rows}
        parts = [f"{len(self.tagged)} tagged"] * bool(self.tagged) + ["tree"] * self.as_tree + [self.sort_title()]
        count = str(len(self.rows)) if shown == len(self.rows) else f"{shown} of {len(self.rows)}"
        return f"Processes {count}", parts

    def why_empty(self) -> str:
        if self.rows:
            return f"no process matches {safe(self.wanted)!r}; Esc clears the filter"
        readings = [device.reading for device in self.state.devices.values() if device.reading]
        for reading in readings:
            if reading.processes_missing:
                return safe(reading.processes_missing.text)
        if any(reading.outside for reading in readings):
            return "no process of this container holds GPU memory"
        return "no process holds GPU memory" if self.state.devices else "no process"

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
            self.rearrange()
        self.post_message(Changed())

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
        """Clear the filter; without one, the tags."""
        if self.wanted:
            self.filter("")
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
        """Request the details of the selected process."""
        if row := self.selected:
            self.post_message(self.Details(row.pid))

    def action_attach(self) -> None:
        """Request that the selected process is read from outside."""
        if row := self.selected:
            self.post_message(self.Attach(row.pid))

    def action_signal(self) -> None:
        ended = {row.pid for row in self.rows if row.process.gone}
        pids = sorted(self.tagged) if self.tagged else [row.pid] if (row := self.selected) else []
        alive = [pid for pid in pids if pid not in ended]
        if alive:
            self.post_message(self.Signal(alive))
        elif pids:
            self.notify("This process has already ended.", timeout=3)
