"""Dialogs that ask the user: a list to choose from, and a line of text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from rich.cells import cell_len
from rich.highlighter import Highlighter
from rich.segment import Segment
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.geometry import clamp
from textual.widget import Widget
from textual.widgets import Input, Static
from textual.widgets.input import Selection

from tfmemtop.safe import safe
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, ERROR, KEY, PLAIN, UNICODE, Glyphs
from tfmemtop.ui.draw.text import exactly, wrap
from tfmemtop.ui.screens.dialog_box import Dialog, Hint

__all__ = ["Dialog", "Hint", "InputDialog", "Option", "OptionsDialog", "Suggestion"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """A row to choose. Pressing ``key`` picks it (its number, if ``key`` is empty); ``value`` is the result."""

    label: str
    value: T
    description: str = ""
    key: str = ""


class OptionsDialog(Dialog[T]):
    """A list to choose from: arrows and Enter, an option's key at once, or the mouse."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", show=False)]

    def __init__(
        self,
        title: str,
        options: Sequence[Option[T]],
        *,
        text: Sequence[str] = (),
        chosen: int = 0,
        glyphs: Glyphs = UNICODE,
        width: int = 76,
    ) -> None:
        """*text*: the paragraphs above the options. *chosen*: the index of the option that is chosen first."""
        super().__init__(title, glyphs=glyphs, width=width)
        self.options = list(options)
        self.text = list(text)
        self.chosen = clamp(chosen, 0, max(0, len(self.options) - 1))
        self._spots: list[tuple[int, int]] = []  # first and last line of each option

    def hints(self) -> list[Hint]:
        arrows = f"{self.glyphs.up}{self.glyphs.down}"
        return [(arrows, "choose"), ("Enter", "take"), ("Esc", "close")]

    def above(self, width: int) -> list[Line]:
        """Return the lines above the options."""
        lines: list[Line] = [[Segment(line)] for part in self.text for line in wrap(part, width)]
        return [*lines, []] if lines else []

    def key_of(self, index: int) -> str:
        """Return the key for the option at *index*; empty if only the arrow keys reach it."""
        return self.options[index].key or (str(index + 1) if index < 9 else "")

    def body(self, width: int) -> list[Line]:
        lines = self.above(width)
        self._spots = []
        keys = max((cell_len(self.key_of(i)) for i in range(len(self.options))), default=0)
        labels = max((cell_len(option.label) for option in self.options), default=0)
        beside = width - keys - labels - 6 >= 24
        for index, option in enumerate(self.options):
            first = len(lines)
            here = index == self.chosen
            key = self.key_of(index).rjust(keys)
            room = labels if beside else max(1, width - keys - 4)
            label = exactly(fit(option.label, room, self.glyphs), room)
            told_at = keys + 4 + (room + 1 if beside else 0)
            told = wrap(option.description, width - told_at) if option.description else []
            head = [
                Segment(f" {key}  ", CHOSEN if here else KEY),
                Segment(label + " ", CHOSEN if here else BOLD),
            ]
            if beside:
                lines.append([*head, Segment(" " + told[0] if told else "")])
                told = told[1:]
            else:
                lines.append(head)
            lines += [[Segment(" " * told_at), Segment(part)] for part in told]
            self._spots.append((first, len(lines) - 1))
        return lines

    def kept_in_view(self) -> int | None:
        return self._spots[self.chosen][0] if self._spots else None

    def pressed(self, line: int) -> None:
        for index, (first, last) in enumerate(self._spots):
            if first <= line <= last:
                self.select(index)
                self.clicked(index)

    def clicked(self, index: int) -> None:
        """Handle a click on the option at *index*: take it."""
        self.take(index)

    def select(self, index: int) -> None:
        """Move the cursor to the option at *index*, or to the nearest."""
        if self.options:
            self.chosen = clamp(index, 0, len(self.options) - 1)
            self.follow()

    def take(self, index: int) -> None:
        """Close the dialog with the option at *index* as its result."""
        self.dismiss(self.options[index].value)

    def on_key(self, event: events.Key) -> None:
        if event.character and self.typed(event.character):
            event.stop()

    def typed(self, character: str) -> bool:
        """Take the option whose key is *character*; return False if there is none."""
        for index in range(len(self.options)):
            if self.key_of(index) == character:
                self.take(index)
                return True
        return False

    def action_choose(self) -> None:
        if self.options:
            self.take(self.chosen)

    def action_move(self, count: int) -> None:
        if self.chosen == 0 and count < 0:
            self.scroll_lines(count)  # the text above may be out of view
        else:
            self.select(self.chosen + count)

    def action_page(self, count: int) -> None:
        self.action_move(count * max(1, self._page - 1))

    def action_edge(self, side: int) -> None:
        self.select(len(self.options) if side > 0 else 0)


Suggestion = tuple[str, str]
"""A value for the field and what it means: ``("4G", "half of the card")``."""


class _Displayed(Highlighter):
    """Shows the typed text without control characters: a line break is shown as a blank. The text itself stays."""

    def highlight(self, text: Text) -> None:
        if safe(text.plain) != text.plain:  # mostly it is the same, and a long text has many characters
            text.plain = "".join(safe(character) or "?" for character in text.plain)


class InputDialog(Dialog[T]):
    """A dialog for one line of text, which is read on Enter. Below the question are values to pick from."""

    DEFAULT_CSS = """
    InputDialog Input, InputDialog Input:focus {
        background: ansi_default;
        background-tint: transparent;
    }
    InputDialog Input:ansi > .input--cursor {
        background: ansi_default;
        color: ansi_default;
        text-style: reverse;  /* without colours too */
    }
    InputDialog Input:ansi > .input--selection {
        background: ansi_default;
        color: ansi_default;
        text-style: reverse;
    }
    InputDialog Horizontal { height: 1; }
    InputDialog Static { width: 2; color: ansi_cyan; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # This comes before the input field's own binding, in which Ctrl-C copies.
        Binding("ctrl+c", "cancel", show=False, priority=True),
    ]

    def __init__(
        self,
        title: str,
        *,
        read: Callable[[str], T],
        text: Sequence[str] = (),
        value: str = "",
        suggestions: Sequence[Suggestion] = (),
        replaces: bool = False,
        glyphs: Glyphs = UNICODE,
        width: int = 76,
    ) -> None:
        """*read* turns the text into the dialog's result.

        It raises ``ValueError`` if the text is not allowed. The dialog then shows the error and stays open. With
        *replaces*, the first key that the user types replaces *value*; otherwise it is added to it.
        """
        super().__init__(title, glyphs=glyphs, width=width)
        self.text = list(text)
        self.error: str | None = None
        self.suggestions = list(suggestions)
        self._read = read
        self._replaces = replaces
        self._picked: int | None = None
        self._suggested_at = 0
        self._field = Input(value, compact=True, select_on_focus=False, highlighter=_Displayed())
        self._field.cursor_blink = False

    def fields(self) -> list[Widget]:
        return [Horizontal(Static("> ", markup=False), self._field)]

    def hints(self) -> list[Hint]:
        arrows = [(f"{self.glyphs.up}{self.glyphs.down}", "pick")] if self.suggestions else []
        return [("Enter", "take"), *arrows, ("Esc", "close"), ("Ctrl-U", "clear")]

    def body(self, width: int) -> list[Line]:
        lines: list[Line] = [[Segment(line)] for part in self.text for line in wrap(part, width)]
        if self.suggestions:
            lines += [[]] if lines else []
            self._suggested_at = len(lines)
            values = min(width, max(cell_len(value) for value, _ in self.suggestions))
            for index, (value, meaning) in enumerate(self.suggestions):
                style = CHOSEN if index == self._picked else BOLD
                shown = exactly(fit(value, values, self.glyphs), values)
                told = fit(meaning, max(0, width - values - 2), self.glyphs)
                lines.append([Segment(shown, style), Segment("  ", PLAIN), Segment(told)])
        if self.error:
            lines += [[], *([Segment(line, ERROR)] for line in wrap(self.error, width))]
        return [*lines, []] if lines else []

    def kept_in_view(self) -> int | None:
        if self.error:
            return len(self.lines) - 2
        return None if self._picked is None else self._suggested_at + self._picked

    def on_mount(self) -> None:
        self._field.focus()
        end = len(self._field.value)
        self._field.selection = Selection(0 if self._replaces else end, end)

    def on_input_changed(self, changed: Input.Changed) -> None:
        if self.error:
            self.error = None
            self.redraw()

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        submitted.stop()
        try:
            self.dismiss(self._read(submitted.value))
        except ValueError as error:
            self.error = str(error)
            self.follow()

    def action_move(self, count: int) -> None:
        if not self.suggestions:
            return
        before = self._picked if self._picked is not None else (-1 if count > 0 else len(self.suggestions))
        self._pick(clamp(before + count, 0, len(self.suggestions) - 1))

    def pressed(self, line: int) -> None:
        index = line - self._suggested_at
        if 0 <= index < len(self.suggestions):
            self._pick(index)

    def _pick(self, index: int) -> None:
        self._picked = index
        self._field.value = self.suggestions[index][0]
        self._field.cursor_position = len(self._field.value)
        self.follow()
