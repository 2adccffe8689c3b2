"""The base of the dialogs, a centred box over another screen, and the dialogs with a page of lines.

Nothing blinks or moves. The box is as high as its content, at most nine tenths of the terminal; the rest can be
scrolled to. Its keys are on the last line. Esc closes it.
"""

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.widget import Widget

from tfmemtop.safe import safe
from tfmemtop.ui.draw.glyphs import DOWN, UP
from tfmemtop.ui.draw.lines import Line, Panel, cannot_be_drawn
from tfmemtop.ui.keys import KeyBar
from tfmemtop.ui.screens import Drawn

COPY_LINES = "copy the lines"
COPIED = "Copied, if the terminal lets programs set the clipboard."

T = TypeVar("T")

Hint = tuple[str, str]
"""A key and what it does: ``("Enter", "send")``."""

_CHROME = 4
"""Columns of the border and of the blanks beside it; also the lines of the border and of the keys."""


class Dialog(Drawn, ModalScreen[T], Generic[T]):
    """A modal box around one widget that scrolls. A subclass closes it with ``dismiss(result)``."""

    reserved = 0
    """Lines between the content and the keys."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical {
        height: auto;
        max-width: 90%;
        background: ansi_default;
        color: ansi_default;
        border: solid ansi_cyan;
        border-title-color: ansi_cyan;
        border-title-style: bold;
        border-subtitle-color: ansi_bright_black;
        padding: 0 1;
    }
    Dialog VerticalScroll, Dialog OptionList { height: auto; scrollbar-size: 0 0; }
    Dialog KeyBar { margin-top: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # Ctrl-C closes the dialog and does nothing else: it must never reach another process. The priority is for
        # fields, in which Ctrl-C copies.
        Binding("ctrl+c", "cancel", show=False, priority=True),
        Binding("escape", "cancel", "close", show=False),
    ]

    def __init__(self, title: str, content: Widget, *, width: int = 76) -> None:
        """*content* is the widget that scrolls if the terminal has too few lines for it."""
        super().__init__()
        self.content = content
        self.width = width
        self._box = Vertical(content, *self.fields(), KeyBar(self.hints))
        self.heading = title

    def hints(self) -> list[Hint]:
        """Return the keys on the last line."""
        return [("Esc", "close")]

    def fields(self) -> Sequence[Widget]:
        """Return the widgets between the content and the keys."""
        return ()

    def compose(self) -> ComposeResult:
        yield self._box

    def on_mount(self) -> None:
        self.watch(self.content, "scroll_y", self._count_hidden)
        self.watch(self.content, "virtual_size", self._count_hidden)

    def on_resize(self) -> None:
        self.redraw()

    @property
    def heading(self) -> str:
        """The title in the border."""
        return self._heading

    @heading.setter
    def heading(self, text: str) -> None:
        self._heading = safe(text)
        self._box.border_title = Content(self._heading)

    def redraw(self) -> None:
        """Draw the keys anew, and fit the box to the terminal."""
        if self.is_mounted:
            columns, rows = self.app.size
            self._box.styles.width = min(self.width, columns * 9 // 10)
            self.content.styles.max_height = max(1, rows * 9 // 10 - _CHROME - self.reserved)
            self.query_one(KeyBar).redraw()
            self.call_after_refresh(self._count_hidden)

    def _count_hidden(self) -> None:
        """Show how many lines are out of view."""
        above = round(self.content.scroll_y)
        below = max(0, self.content.virtual_size.height - above - self.content.size.height)
        counts = (DOWN, below, "more below"), (UP, above, "above")
        parts = [f"{arrow} {count} {where}" for arrow, count, where in counts if count]
        self._box.border_subtitle = Content("  ".join(parts))

    def action_cancel(self) -> None:
        self.dismiss(None)

    def copy(self, lines: Sequence[str]) -> None:
        """Copy *lines*, if any, to the terminal's clipboard by OSC 52, even if it is on another machine."""
        if lines:
            self.app.copy_to_clipboard("\n".join(lines) + "\n")
            self.app.notify(COPIED, timeout=3)


class PageDialog(Dialog[T]):
    """A page of lines. A subclass returns them from :meth:`body`."""

    def __init__(self, title: str, *, width: int = 76) -> None:
        self.lines: list[Line] = []
        self._page = _Page(self.lines)
        super().__init__(title, VerticalScroll(self._page), width=width)

    def body(self, width: int) -> list[Line]:
        """Return the dialog's lines, none wider than *width* cells."""
        raise NotImplementedError(type(self).__name__)

    def redraw(self) -> None:
        super().redraw()
        if not self.is_mounted:
            return
        width = min(self.width, self.app.size.width * 9 // 10) - _CHROME
        try:
            self.lines[:] = self.body(width)
        except Exception as error:  # whatever it is, the screen below must go on
            self.lines[:] = [cannot_be_drawn("this dialog", error, width)]
        self._page.styles.height = len(self.lines)
        self._page.redraw()

    def scroll_to_line(self, index: int) -> None:
        """Bring the line with the *index* into view."""
        self.content.scroll_to_region(Region(0, index, 1, 1), animate=False, force=True)

    def pressed(self, line: int) -> None:
        """Handle a click on the line with the index *line*."""


class _Page(Panel):
    def __init__(self, lines: list[Line]) -> None:
        super().__init__()
        self._shown = lines

    def build(self, width: int, height: int) -> list[Line]:
        return list(self._shown)

    def on_click(self, click: events.Click) -> None:
        if isinstance(self.screen, PageDialog):
            self.screen.pressed(click.y)
