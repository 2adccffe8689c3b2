"""What panels and tables with a cursor have in common: moving, drawing, sorting and filtering rows."""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import clamp

from tfmemtop.safe import safe
from tfmemtop.ui.draw.columns import Layout, Order
from tfmemtop.ui.draw.glyphs import DOT, DOWN, LIMIT_MARK, UP
from tfmemtop.ui.draw.lines import Line, Panel, cut, fit
from tfmemtop.ui.draw.palette import DIM
from tfmemtop.ui.draw.text import cut_left
from tfmemtop.ui.keys import FILTERING, Hints
from tfmemtop.ui.screens import Changed

_FAR = 100_000
"""Rows: more than any panel has, so that the first or the last is reached."""


class CursorPanel(Panel, can_focus=True):
    """A panel of rows with a cursor. A subclass moves the cursor, and asks ``in_view`` which rows to draw."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", f"move(-{_FAR})", show=False),
        Binding("end", f"move({_FAR})", show=False),
    ]
    wheel = 3
    """Rows by which the wheel scrolls."""

    def __init__(self) -> None:
        super().__init__()
        self.top = 0
        """The index of the first row in view."""
        self.room = 1
        """How many rows fit."""

    def move(self, count: int) -> None:
        """Move the cursor by *count* rows, down if positive."""
        raise NotImplementedError(type(self).__name__)

    def scroll_rows(self, count: int) -> None:
        """Handle the wheel: move the cursor."""
        self.move(count)

    def in_view(self, count: int, room: int, at: int | None) -> range:
        """Return which of *count* rows are in view where *room* of them fit; row *at* is among them, if given."""
        self.room = max(1, room)
        if at is not None:
            self.top = clamp(self.top, at - self.room + 1, at)
        self.top = clamp(self.top, 0, max(0, count - self.room))
        return range(self.top, min(count, self.top + self.room))

    def action_move(self, count: int) -> None:
        self.move(count)

    def action_page(self, count: int) -> None:
        self.move(count * max(1, self.room - 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(self.wheel)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-self.wheel)


_TOP = 2
"""Lines above the first row: the title and the header."""

R = TypeVar("R")


class RowTable(CursorPanel, Generic[R]):
    """A table with a cursor. A subclass arranges and draws the rows; ``order`` is how they are sorted."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("full_stop,f6", "sort(1)", "sort by the next column", show=False),
        Binding("comma", "sort(-1)", "sort by the column before", show=False),
        Binding("I", "invert", "invert the order", show=False),
        Binding("slash,f4", "filter", "filter", show=False),
        Binding("escape", "clear", "clear", show=False),
    ]
    first_is_a_place = False
    """Whether a cursor on the first row stays at the top, whichever row is there later."""

    def __init__(self, order: Order) -> None:
        super().__init__()
        self.order = order
        self.wanted = ""
        """The filter. Keys go into it from ``action_filter`` until Enter, which keeps it, or Esc, which clears it."""
        self.typing = False
        """Whether keys go into the filter."""
        self.laid_out: Layout[Any] = Layout()
        self.index = 0
        """The index of the row under the cursor."""
        self.chosen: Hashable = None
        """The key of that row, by which it is found again; ``None``: the first row, whichever that is."""
        self._arranged: list[R] | None = None  # None until the rows are needed
        self._follow = True  # keep the selected row in view; off after the wheel has scrolled

    # What a subclass defines.

    def in_order(self) -> list[R]:
        """Return the rows that pass the filter, in their order."""
        raise NotImplementedError

    def key_of(self, row: R) -> Hashable:
        """Return the key by which a row is found again at the next drawing."""
        raise NotImplementedError

    def lay_out(self, width: int) -> Layout[Any]:
        """Return the columns that fit in *width* cells."""
        raise NotImplementedError

    def row_line(self, row: R, *, chosen: bool) -> Line:
        """Return a row as a line; *chosen*: the cursor is on it."""
        raise NotImplementedError

    def title(self, shown: int) -> tuple[str, list[str]]:
        """Return the title, and the parts at its right end. *shown* is the number of rows."""
        raise NotImplementedError

    def why_empty(self) -> str:
        """Return why there are no rows."""
        raise NotImplementedError

    def action_open(self) -> None:
        """Show more of the chosen row."""
        raise NotImplementedError

    def successor(self, keys: Sequence[Hashable]) -> int:
        """Return the index of the row that is chosen now, as the one with the key ``chosen`` has gone."""
        return clamp(self.index, 0, max(0, len(keys) - 1))

    # What is shown.

    @property
    def arranged(self) -> list[R]:
        """The rows as they stand in the table."""
        if self._arranged is None:
            self._arranged = self.in_order()
            keys = [self.key_of(row) for row in self._arranged]
            if self.chosen is None:
                self.index = 0
            elif self.chosen in keys:
                self.index = keys.index(self.chosen)
            else:
                self.index = self.successor(keys)
                self.chosen = keys[self.index] if keys else self.chosen
        return self._arranged

    @property
    def under_cursor(self) -> R | None:
        """The row under the cursor; ``None`` if there are no rows."""
        return self.arranged[self.index] if self.arranged else None

    @property
    def mode(self) -> Hints:
        """The keys of the filter while the user types it, else none."""
        return FILTERING if self.typing else ()

    def build(self, width: int, height: int) -> list[Line]:
        rows = self.arranged
        self.laid_out = self.lay_out(width)
        title, parts = self.title(len(rows))
        right = self._right(width - len(title) - 16, parts)
        lines = [self.title_line(width, title, right, chosen=self.has_focus), self.laid_out.names(self.order)]
        seen = self.in_view(len(rows), height - _TOP, self.index if self._follow else None)
        lines += [self.row_line(rows[index], chosen=index == self.index) for index in seen]
        if not rows:
            lines.append([Segment(fit(f"   {self.why_empty()}", width), DIM)])
        end = max((start + wide for _, start, wide in self.laid_out.columns), default=0)
        return lines if end <= width else [cut(line, width) for line in lines]  # one column stays in any case

    def _right(self, room: int, parts: list[str]) -> str:
        """Return the right end of the title, in about *room* cells: *parts*, and the filter."""
        wanted = safe(self.wanted)
        if self.typing:  # its end stays in view
            return f"filter: {cut_left(wanted, cell_len(wanted) + 1 - max(4, room))}{LIMIT_MARK}"
        if wanted:
            taken = sum(len(part) + 3 for part in parts)
            parts = [*parts, "filter: " + fit(wanted, max(4, room - taken))]
        return f" {DOT} ".join(parts)

    def sort_title(self) -> str:
        """Return by which column the rows are sorted, and in which direction."""
        return f"sort {self.order.column} {DOWN if self.order.falling else UP}"

    # The cursor.

    def select(self, index: int) -> None:
        """Put the cursor on the row at *index*, or on the nearest."""
        if rows := self.arranged:
            self.index = clamp(index, 0, len(rows) - 1)
            at_the_top = self.first_is_a_place and self.index == 0
            self.chosen = None if at_the_top else self.key_of(rows[self.index])
        self.changed()

    def rearrange(self) -> None:
        """Draw the rows anew, because their order or the filter has changed."""
        self._arranged = None
        self.changed()

    def forget(self) -> None:
        """Arrange the rows anew when they are drawn next, because they have changed."""
        self._arranged = None

    def changed(self) -> None:
        """Draw the table with the cursor in view."""
        self._follow = True
        self.redraw()

    def move(self, count: int) -> None:
        if self.arranged:  # which finds the chosen row again, if the rows have changed
            self.select(self.index + count)

    def scroll_rows(self, count: int) -> None:
        self._follow = False
        self.top += count
        self.redraw()

    # Order and filter.

    def action_sort(self, count: int) -> None:
        self.order = self.order.step(count)
        self.rearrange()

    def action_invert(self) -> None:
        self.order = self.order.by(self.order.column)
        self.rearrange()

    def action_filter(self) -> None:
        """Let the user type a filter: Enter keeps it, Esc clears it."""
        self.focus()
        self._type(True)

    def action_clear(self) -> None:
        """Clear the filter."""
        self.filter("")

    def filter(self, wanted: str) -> None:
        """Show the rows that pass the filter *wanted*."""
        self.wanted = wanted
        self.rearrange()

    def _type(self, typing: bool) -> None:
        self.typing = typing
        self.post_message(Changed())

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return self.typing and character is not None and character.isprintable()

    def on_key(self, event: events.Key) -> None:
        """Put the key into the filter, unless it is one that moves the cursor or scrolls."""
        if not self.typing:
            return
        if event.key in ("enter", "escape"):
            self._type(False)
            self.filter(self.wanted if event.key == "enter" else "")
        elif event.key in ("backspace", "ctrl+h"):
            self.filter(self.wanted[:-1])
        elif event.key == "ctrl+u":
            self.filter("")
        elif event.character and event.is_printable:
            self.filter(self.wanted + event.character)
        else:
            return
        event.stop()
        event.prevent_default()

    def on_paste(self, event: events.Paste) -> None:
        if self.typing:
            event.stop()
            self.filter(self.wanted + safe(event.text.strip()))

    def on_focus(self) -> None:
        self.redraw()

    def on_blur(self) -> None:
        if self.typing:
            self._type(False)
        self.redraw()

    # The mouse.

    def on_click(self, click: events.Click) -> None:
        if click.y == 1 and (column := self.laid_out.at(click.x)):
            self.order = self.order.by(column)
            self.rearrange()
        index = self.top + click.y - _TOP
        if click.y >= _TOP and index < len(self.arranged):
            self.select(index)
            if click.chain == 2:
                self.action_open()
