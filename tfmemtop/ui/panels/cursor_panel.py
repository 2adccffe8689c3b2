"""What panels with a cursor have in common: its keys, the wheel, and which rows are in view."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import clamp

from tfmemtop.ui.draw.lines import Panel
from tfmemtop.ui.draw.palette import UNICODE, Glyphs

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

    def __init__(self, *, glyphs: Glyphs = UNICODE) -> None:
        super().__init__(glyphs=glyphs)
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
