"""The prompt of a table's filter: its keys, and its text for the table's title."""

from typing import Protocol

from textual import events
from textual.message import Message

from tfmemtop.safe import safe
from tfmemtop.ui.draw.lines import fit
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.screens.drawn import Changed


class View(Protocol):
    """The table that is filtered."""

    def rearrange(self) -> None:
        """Draw the rows that pass the filter."""

    def post_message(self, message: Message) -> bool: ...


def edited(text: str, event: events.Key) -> str | None:
    """Return *text* after a key is pressed at its end; ``None`` if the key does not edit text."""
    if event.key in ("backspace", "ctrl+h"):
        return text[:-1]
    if event.key == "ctrl+u":
        return ""
    return text + event.character if event.character and event.is_printable else None


class FilterPrompt:
    """The prompt of a filter. It receives keys from ``begin`` until Enter, which keeps it, or Esc, which clears it."""

    def __init__(self, view: View) -> None:
        self.text = ""
        self.typing = False
        """Whether keys go into the filter."""
        self._view = view

    def begin(self) -> None:
        self.typing = True
        self._view.rearrange()
        self._view.post_message(Changed())

    def keep(self) -> None:
        """Receive no more keys; the rows stay filtered."""
        self.typing = False
        self._view.post_message(Changed())

    def set(self, text: str) -> None:
        """Show only the rows with *text*; all rows if it is empty."""
        self.text = text
        self._view.rearrange()

    def press(self, event: events.Key) -> None:
        """Handle the key, unless it is one that moves the cursor."""
        if event.key in ("enter", "escape"):
            self.keep()
            self.set(self.text if event.key == "enter" else "")
        elif (text := edited(self.text, event)) is not None:
            self.set(text)
        else:
            return  # arrows and the like still move the cursor
        event.stop()
        event.prevent_default()

    def paste(self, text: str) -> None:
        self.set(self.text + safe(text.strip()))

    def title(self, room: int, beside: list[str], glyphs: Glyphs) -> list[str]:
        """Return the parts of a title in *room* cells: *beside*, its other parts, and the filter if there is one."""
        wanted = safe(self.text)
        if self.typing:  # the end of the typed text must stay in view, so the other parts are left out
            return [f"filter: {wanted[-max(4, room) :]}{glyphs.limit}"]
        if not wanted:
            return beside
        return [*beside, "filter: " + fit(wanted, max(4, room - sum(len(part) + 3 for part in beside)), glyphs)]
