"""The dialogs with a list to choose from, and those with a line to type."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Generic

import msgspec
from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.style import Style as VisualStyle
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static, option_list
from textual.widgets.input import Selection

from tfmemtop.failure import reason
from tfmemtop.safe import safe
from tfmemtop.ui.draw.glyphs import ARROWS
from tfmemtop.ui.draw.palette import BOLD, KEY, PLAIN
from tfmemtop.ui.draw.text import wrap
from tfmemtop.ui.screens.dialog import Dialog, Hint, T


class _Options(OptionList):
    """Paragraphs, and the options below them. The cursor does not leave the list at the top: the paragraphs show."""

    DEFAULT_CSS = """
    _Options, _Options:focus { background: ansi_default; background-tint: transparent; color: ansi_default; }
    _Options > .option-list--option-disabled { color: ansi_default; }
    _Options > .option-list--option-hover { background: ansi_default; }
    _Options > .option-list--option-highlighted, _Options:focus > .option-list--option-highlighted {
        background: ansi_default;
        color: ansi_default;
        text-style: none;
    }
    """

    def __init__(self, text: Sequence[str], rows: Iterable[Sequence[tuple[str, Style]]]) -> None:
        """*rows* are the options, each with its cells."""
        cells = [[Text(safe(part), style) for part, style in row] for row in rows]
        above = [Text("\n".join(map(safe, text)) + "\n" * bool(cells))] if text else []
        super().__init__(*(option_list.Option(part, disabled=True) for part in above), compact=True, markup=False)
        self.first = len(above)
        widths = [max(part.cell_len for part in column) for column in zip(*cells, strict=True)]
        for row in cells:
            table = Table.grid(padding=(0, 2, 0, 0), expand=True)
            for width in widths[:-1]:
                table.add_column(width=width)
            table.add_column(ratio=1)
            table.add_row(*row)
            self.add_option(option_list.Option(table))

    @property
    def at(self) -> int | None:
        """The index of the option under the cursor."""
        return None if self.highlighted is None else self.highlighted - self.first

    @at.setter
    def at(self, index: int | None) -> None:
        self.highlighted = None if index is None else index + self.first

    def get_visual_style(self, *component_classes: str, partial: bool = False) -> VisualStyle:
        """Return the style, in reverse video for the option under the cursor: Textual leaves ``reverse`` out."""
        here = "option-list--option-highlighted" in component_classes
        return super().get_visual_style(*component_classes, partial=partial) + VisualStyle(reverse=here)

    def on_resize(self) -> None:
        self.call_after_refresh(self.scroll_to_highlight)

    def action_cursor_up(self) -> None:
        if self.at == 0:
            self.scroll_up(animate=False)
        else:
            super().action_cursor_up()

    def on_click(self, click: events.Click) -> None:
        if isinstance(self.screen, OptionsDialog) and self.screen.click_chooses_only:
            click.prevent_default()
            if (index := click.style.meta.get("option", 0)) >= self.first:
                self.highlighted = index


class Option(msgspec.Struct, Generic[T], frozen=True):
    """A row to choose. Pressing ``key`` picks it (its number, if ``key`` is empty); ``value`` is the result."""

    label: str
    value: T
    description: str = ""
    key: str = ""


class OptionsDialog(Dialog[T]):
    """A list to choose from: arrows and Enter, an option's key at once, or the mouse."""

    content: _Options
    click_chooses_only = False

    def __init__(
        self,
        title: str,
        options: Sequence[Option[T]],
        *,
        text: Sequence[str] = (),
        width: int = 76,
    ) -> None:
        """*text*: the paragraphs above the options."""
        self.options = list(options)
        keys = [option.key or (str(index) if index < 10 else "") for index, option in enumerate(options, 1)]
        self.indices = {key: index for index, key in enumerate(keys) if key}
        most = max(map(len, keys), default=0)
        rows = [
            ((f" {key:>{most}}", KEY), (option.label, BOLD), (option.description, PLAIN))
            for key, option in zip(keys, options, strict=True)
        ]
        content = _Options(text, rows)
        content.at = 0
        super().__init__(title, content, width=width)

    def hints(self) -> list[Hint]:
        return [(ARROWS, "choose"), ("Enter", "take"), ("Esc", "close")]

    def on_key(self, event: events.Key) -> None:
        if event.character and self.typed(event.character):
            event.stop()

    def typed(self, character: str) -> bool:
        """Take the option whose key is *character*; return False if there is none."""
        if character in self.indices:
            self.dismiss(self.options[self.indices[character]].value)
        return character in self.indices

    @on(OptionList.OptionSelected)
    def _take(self) -> None:
        if self.content.at is not None:
            self.dismiss(self.options[self.content.at].value)


class _Field(Input):
    """Takes all keys in the order of typing. Textual's own takes those with a binding later than letters.

    Over a slow connection several keys arrive at once: Ctrl-U, 25%, Enter.
    """

    async def on_key(self, event: events.Key) -> None:
        bound = self._bindings.key_to_bindings.get(event.key)
        if bound and not event.is_printable and await self.app.run_action(bound[0].action, self):
            event.stop()
            event.prevent_default()


Suggestion = tuple[str, str]
"""A value for the field and what it means: ``("4G", "half of the card")``."""


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
    InputDialog Horizontal { height: 1; margin-top: 1; }
    InputDialog Horizontal Static { width: 2; color: ansi_cyan; text-style: bold; }
    InputDialog #error { margin-top: 1; color: ansi_red; text-style: bold; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "pick('cursor_up')", show=False),
        Binding("down", "pick('cursor_down')", show=False),
        Binding("pageup", "pick('page_up')", show=False),
        Binding("pagedown", "pick('page_down')", show=False),
    ]
    content: _Options
    reserved = 2

    def __init__(
        self,
        title: str,
        *,
        read: Callable[[str], T],
        text: Sequence[str] = (),
        value: str = "",
        suggestions: Sequence[Suggestion] = (),
        replaces: bool = False,
        takes: str = "take",
        width: int = 76,
    ) -> None:
        """*read* turns the text into the dialog's result.

        It raises ``ValueError`` if the text is not allowed. The dialog then shows the error and stays open. With
        *replaces*, the first key that the user types replaces *value*; otherwise it is added to it. *takes* is what
        Enter does.
        """
        self._read = read
        self._replaces = replaces
        self._takes = takes
        self._suggestions = suggestions
        self._error = Static(id="error", markup=False)
        self._field = _Field(value, compact=True, select_on_focus=False)
        self._field.cursor_blink = False
        content = _Options(text, ([(word, BOLD), (meaning, PLAIN)] for word, meaning in suggestions))
        content.at = None
        content.can_focus = False
        super().__init__(title, content, width=width)

    def fields(self) -> Sequence[Widget]:
        return self._error, Horizontal(Static("> ", markup=False), self._field)

    def hints(self) -> list[Hint]:
        arrows = [(ARROWS, "pick")] if self._suggestions else []
        return [("Enter", self._takes), *arrows, ("Esc", "close"), ("Ctrl-U", "clear")]

    def on_mount(self) -> None:
        self._field.focus()
        end = len(self._field.value)
        self._field.selection = Selection(0 if self._replaces else end, end)

    def on_input_changed(self) -> None:
        self._tell("")

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        submitted.stop()
        try:
            self.dismiss(self._read(submitted.value))
        except ValueError as error:
            self._tell(reason(error))

    def _tell(self, error: str) -> None:
        lines = wrap(error, self.content.size.width) if error else []
        if lines or self._error.display:
            self._error.display = bool(lines)
            self._error.update("\n".join(lines))
            self.reserved = 2 + len(lines) + bool(lines)
            self.redraw()

    async def action_pick(self, move: str) -> None:
        await self.content.run_action(move)
        self._fill()

    @on(OptionList.OptionSelected)
    def _fill(self) -> None:
        if self.content.at is not None:
            self._field.value = self._suggestions[self.content.at][0]
            self._field.cursor_position = len(self._field.value)
