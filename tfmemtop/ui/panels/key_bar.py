"""The last line of a screen: the keys. A click on a key presses it."""

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual import events as textual_events
from textual.message import Message
from textual.widget import Widget

from tfmemtop.ui.draw.columns import fitting
from tfmemtop.ui.draw.lines import Line, Panel, width_of
from tfmemtop.ui.draw.palette import KEY, Glyphs
from tfmemtop.ui.keys import KEYS, WATCHING, Key

Hints = Sequence[tuple[str, str]]
"""Keys and what they do."""


class KeyBar(Panel):
    """One line of keys and their words; on a narrow screen the least important keys are left out.

    *instead* returns the keys to show while keys have another meaning, such as while the user types; else nothing.
    """

    DEFAULT_CSS = "KeyBar { height: 1; }"

    class Pressed(Message):
        """A key of the bar was clicked; *action* is what it does."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, keys: Callable[[], Sequence[Key]], *, glyphs: Glyphs, instead: Callable[[], Hints]) -> None:
        super().__init__(glyphs=glyphs)
        self._keys = keys
        self._instead = instead
        self._spots: tuple[tuple[int, int, Key], ...] = ()

    def build(self, width: int, height: int) -> list[Line]:
        if hints := self._instead():
            self._spots = ()
            return [hint_line(hints, width)]
        keys = fitting(
            self._keys(), width + 1, lambda key: len(key.shown) + len(key.footer) + 3, lambda key: -key.rank, 0
        )
        line: Line = [Segment(" ")]
        spots = []
        x = 1
        for key in keys:
            word = key.footer
            taken = len(key.shown) + 1 + len(word)
            spots.append((x, x + taken, key))
            line += [Segment(key.shown, KEY), Segment(f" {word}  ")]
            x += taken + 2
        self._spots = tuple(spots)
        return [line]

    def on_click(self, click: textual_events.Click) -> None:
        press_hint(self, self._instead(), click.x - 1)
        for start, end, key in self._spots:
            if start <= click.x < end:
                if key.action:
                    self.post_message(self.Pressed(key.action))
                else:
                    _press(self, key.name)  # the panel with the focus handles this key


class HintLine(Panel):
    """The last line of a screen other than the main one: its keys and their words, as many as fit."""

    DEFAULT_CSS = "HintLine { height: 1; }"

    def __init__(self, hints: Callable[[], Hints], *, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs)
        self._hints = hints

    def build(self, width: int, height: int) -> list[Line]:
        return [hint_line(self._hints(), width)]

    def on_click(self, click: textual_events.Click) -> None:
        press_hint(self, self._hints(), click.x - 1)


def hint_line(hints: Hints, width: int) -> Line:
    """Return the line of *hints*, as many as fit into *width* cells. A hint without a key is a remark."""
    line: Line = [Segment(" ")]
    for key, word in hints:
        more = [Segment(key, KEY), Segment(f" {word}  ".removeprefix("" if key else " "))]
        if width_of(line) + width_of(more) > width + 2:
            break
        line += more
    return line


_NAMES = {
    **{"Esc": "escape", "Enter": "enter", "Space": "space", "Tab": "tab", "Home": "home", "End": "end"},
    **{"Ctrl-U": "ctrl+u", "Ctrl-]": "ctrl+right_square_bracket", "F1": "f1"},
}
"""Textual's names of the keys in hints, by what is shown. Letters and digits have the same name in both."""

_BRACKETED = {f"[{key.shown}]": key for key in (*KEYS, *WATCHING)}
"""The keys that a remedy can name, as it shows them."""


def press_hint(widget: Widget, hints: Hints, x: int) -> None:
    """Press the first key of the hint that is drawn at cell *x*, if it is a letter, a digit, or in ``_NAMES``."""
    start = 0
    for key, word in hints:
        end = start + cell_len(key) + 1 + cell_len(word)
        first = key.partition(" ")[0]
        if start <= x < end and (name := _name(first)):
            _press(widget, name)
        start = end + 2


def press_bracketed(panel: Panel, click: textual_events.Click) -> bool:
    """Press the key in brackets where *panel* was clicked, as in ``[L] set a limit``; return False if there is none."""
    key = _BRACKETED.get(panel.text_at(click.x, click.y).strip())
    if key is not None:
        _press(panel, key.name)
    return key is not None


def _name(shown: str) -> str | None:
    return _NAMES.get(shown) or (shown if len(shown) == 1 and shown.isalnum() and shown.isascii() else None)


def _press(widget: Widget, name: str) -> None:
    """Press the key that has this *name* in Textual."""
    widget.app.post_message(textual_events.Key(name, name if len(name) == 1 else None))
