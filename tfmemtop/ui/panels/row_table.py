"""What tables with a cursor have in common: moving it, sorting and filtering rows, by keys and by the mouse."""

from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.binding import Binding, BindingType

from tfmemtop.safe import safe
from tfmemtop.ui.draw.columns import Order
from tfmemtop.ui.draw.lines import fit
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.panels.cursor_panel import CursorPanel
from tfmemtop.ui.panels.prompt import Prompt

TOP = 2
"""Lines above the first row: the title and the header."""

Sorted = TypeVar("Sorted", bound=Order)


class RowTable(CursorPanel, Generic[Sorted]):
    """A table with a cursor. A subclass defines the rows; ``order`` is how they are sorted."""

    BINDINGS: ClassVar[list[BindingType]] = [
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
        self.filter = Prompt(self, lambda _: self.rearrange())
        self._index = 0
        self._follow = True  # keep the selected row in view; off after the wheel has scrolled

    # What a subclass defines.

    @property
    def count(self) -> int:
        """The number of rows that pass the filter."""
        raise NotImplementedError

    @property
    def at(self) -> int:
        """The index of the row under the cursor."""
        return self._index

    def select(self, index: int) -> None:
        """Put the cursor on the row at *index*, or on the nearest."""
        raise NotImplementedError

    def rearrange(self) -> None:
        """Draw the rows anew, because their order or the filter has changed."""
        raise NotImplementedError

    def action_open(self) -> None:
        """Show more of the chosen row."""
        raise NotImplementedError

    def column_at(self, x: int) -> str | None:
        """Return the name of the column whose header is at cell *x*."""
        raise NotImplementedError

    # The cursor.

    def rows_in_view(self, count: int, height: int) -> range:
        """Return which of *count* rows are in view in a panel of *height* lines."""
        return self.in_view(count, height - TOP, self.at if self._follow else None)

    def move(self, count: int) -> None:
        self.select(self.at + count)

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
        self.filter.begin(self.filter.text)

    def action_clear(self) -> None:
        """Clear the filter."""
        self.filter.set("")

    def title_parts(self, room: int, beside: list[str]) -> str:
        """Return the right part of the title, in about *room* cells: the parts *beside*, and the filter."""
        wanted = safe(self.filter.text)
        if self.filter.typing:
            return f"filter: {self.filter.shown(room, self.glyphs)}"
        if wanted:
            taken = sum(len(part) + 3 for part in beside)
            beside = [*beside, "filter: " + fit(wanted, max(4, room - taken), self.glyphs)]
        return f" {self.glyphs.dot} ".join(beside)

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return self.filter.consumes(character)

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
        index = self.top + click.y - TOP
        if click.y >= TOP and index < self.count:
            self.select(index)
            if click.chain == 2:
                self.action_open()
