"""What tables with a cursor have in common: it moves, rows are sorted and filtered, and the mouse does the same."""

from typing import ClassVar, Generic, Protocol, TypeVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import clamp

from tfmemtop.ui.draw.lines import Panel
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.panels.process_filter import FilterPrompt

TOP = 2
"""Lines above the first row: title and header."""
_WHEEL = 3

Sorted = TypeVar("Sorted", bound="Order")


class Order(Protocol):
    """By which column rows are sorted, and in which direction."""

    @property
    def column(self) -> str:
        """Its name."""

    def step(self: Sorted, count: int) -> Sorted:
        """The column that many further to the right."""

    def by(self: Sorted, column: str) -> Sorted:
        """By *column*; inverted if it already was by that one."""


class RowTable(Panel, Generic[Sorted], can_focus=True):
    """A table. Its kinds say what the rows are; ``order`` is how they are sorted."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "edge(-1)", show=False),
        Binding("end", "edge(1)", show=False),
        Binding("full_stop,f6", "sort(1)", "sort by the next column", show=False),
        Binding("comma", "sort(-1)", "sort by the column before", show=False),
        Binding("I", "invert", "invert the order", show=False),
        Binding("slash,f4", "filter", "filter", show=False),
        Binding("escape", "clear", "clear", show=False),
    ]

    order: Sorted

    def __init__(self, order: Sorted, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.order = order
        self.filter = FilterPrompt(self)
        self._index = 0
        self._top = 0
        self._follow = True  # keep the selected row in view; off while the wheel looks elsewhere

    # What a kind of table says.

    @property
    def count(self) -> int:
        """Rows that are shown."""
        raise NotImplementedError

    @property
    def at(self) -> int:
        """The place of the cursor."""
        return self._index

    def select(self, index: int) -> None:
        """Put the cursor on the row at *index*, or the nearest."""
        raise NotImplementedError

    def rearrange(self) -> None:
        """Draw the rows anew: their order, or which of them are shown, has changed."""
        raise NotImplementedError

    def action_open(self) -> None:
        """Show more of the chosen row."""
        raise NotImplementedError

    def column_at(self, x: int) -> str | None:
        """The name of the column whose header is at cell *x*."""
        raise NotImplementedError

    # The cursor.

    def keep_in_view(self, count: int, room: int) -> None:
        """Scroll, so that the cursor is among the *room* rows that are seen of *count*."""
        if self._follow:
            self._top = clamp(self._top, self._index - max(1, room) + 1, self._index)
        self._top = clamp(self._top, 0, max(0, count - room))

    def action_move(self, count: int) -> None:
        self.select(self.at + count)

    def action_page(self, count: int) -> None:
        self.select(self.at + count * max(1, self.size.height - TOP - 1))

    def action_edge(self, side: int) -> None:
        self.select(self.count if side > 0 else 0)

    # Order and filter.

    def action_sort(self, count: int) -> None:
        self.order = self.order.step(count)
        self.rearrange()

    def action_invert(self) -> None:
        self.order = self.order.by(self.order.column)
        self.rearrange()

    def action_filter(self) -> None:
        """Take the keys and type a filter: Enter keeps it, Esc clears it."""
        self.focus()
        self.filter.begin()

    def action_clear(self) -> None:
        """Clear the filter."""
        self.filter.set("")

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return self.filter.typing and character is not None and character.isprintable()

    def on_key(self, event: events.Key) -> None:
        if self.filter.typing:
            self.filter.press(event)

    def on_paste(self, event: events.Paste) -> None:
        if self.filter.typing:
            event.stop()
            self.filter.paste(event.text)

    def on_focus(self) -> None:
        self.redraw()

    def on_blur(self) -> None:
        if self.filter.typing:
            self.filter.keep()
        self.redraw()

    # The mouse.

    def on_click(self, click: events.Click) -> None:
        if click.y == 1 and (column := self.column_at(click.x)):
            self.order = self.order.by(column)
            self.rearrange()
        index = self._top + click.y - TOP
        if click.y >= TOP and index < self.count:
            self.select(index)
            if click.chain == 2:
                self.action_open()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._scroll(event, _WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._scroll(event, -_WHEEL)

    def _scroll(self, event: events.MouseEvent, count: int) -> None:
        event.stop()
        self._follow = False
        self._top += count
        self.redraw()
