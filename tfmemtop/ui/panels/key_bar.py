"""The last line of a screen: the keys. A click on a key presses it."""

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual import events as textual_events

from tfmemtop.ui.draw.lines import Line, Panel
from tfmemtop.ui.draw.palette import KEY, Glyphs

Hints = Sequence[tuple[str, str]]
"""Keys and what they do. A hint without a key is a remark."""


class KeyBar(Panel):
    """One line of keys and their words, as many as fit. *hints* returns those that have an effect now."""

    DEFAULT_CSS = "KeyBar { height: 1; }"

    def __init__(self, hints: Callable[[], Hints], *, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs)
        self._hints = hints
        self._spots: dict[range, str] = {}  # the keys by the cells that they and their words take

    def build(self, width: int, height: int) -> list[Line]:
        line: Line = [Segment(" ")]
        end = 1
        self._spots = {}
        for key, word in self._hints():
            text = f" {word}" if key else word
            cells = range(end, end + cell_len(key + text))
            if cells.stop > width:
                break
            line += [Segment(key, KEY), Segment(f"{text}  ")]
            self._spots[cells] = key.partition(" ")[0]
            end = cells.stop + 2
        return [line]

    def on_click(self, click: textual_events.Click) -> None:
        for cells, key in self._spots.items():
            if click.x in cells:
                name = _NAMES.get(key, key)
                self.app.post_message(textual_events.Key(name, name if len(name) == 1 else None))


_NAMES = {
    **{"Esc": "escape", "Enter": "enter", "Space": "space", "Tab": "tab", "Home": "home", "End": "end"},
    **{"Ctrl-U": "ctrl+u", "Ctrl-]": "ctrl+right_square_bracket", "F1": "f1", "/": "slash"},
}
"""Textual's names of the keys in hints, by what is shown. Letters and digits have the same name in both."""
