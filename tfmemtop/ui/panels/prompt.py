"""A text that the user types into the title of a panel, such as a filter."""

from collections.abc import Callable

from rich.cells import cell_len
from textual import events
from textual.widget import Widget

from tfmemtop.safe import safe
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.draw.text import cut_left
from tfmemtop.ui.screens import Changed


class Prompt:
    """The typed ``text``. Keys go into it from ``begin`` until Enter, which keeps it, or Esc, which clears it."""

    def __init__(self, panel: Widget, use: Callable[[str], None]) -> None:
        """*use* is called with the text whenever it has changed."""
        self.text = ""
        self.typing = False
        """Whether keys go into the text."""
        self._panel = panel
        self._use = use

    def begin(self, text: str) -> None:
        """Let the user type, after *text*."""
        self.typing = True
        self.set(text)
        self._panel.post_message(Changed())

    def keep(self) -> None:
        """Receive no more keys; the text stays."""
        self.typing = False
        self._panel.post_message(Changed())

    def set(self, text: str) -> None:
        self.text = text
        self._use(text)

    def consumes(self, character: str | None) -> bool:
        """Return whether a key with that *character* is text."""
        return self.typing and character is not None and character.isprintable()

    def press(self, event: events.Key) -> None:
        """Handle the key, unless it is one that moves the cursor or scrolls."""
        if event.key in ("enter", "escape"):
            self.keep()
            self.set(self.text if event.key == "enter" else "")
        elif event.key in ("backspace", "ctrl+h"):
            self.set(self.text[:-1])
        elif event.key == "ctrl+u":
            self.set("")
        elif event.character and event.is_printable:
            self.set(self.text + event.character)
        else:
            return
        event.stop()
        event.prevent_default()

    def paste(self, text: str) -> None:
        self.set(self.text + safe(text.strip()))

    def shown(self, room: int, glyphs: Glyphs) -> str:
        """Return the end of the text, which stays in view while the user types, and a cursor, in *room* cells."""
        text = safe(self.text)
        return cut_left(text, cell_len(text) + 1 - max(4, room)) + glyphs.limit
