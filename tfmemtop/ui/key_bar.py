"""The last line: the keys. A click on one presses it."""

from collections.abc import Callable, Sequence

from rich.segment import Segment
from textual import events as textual_events
from textual.message import Message

from tfmemtop.ui.keys import Key
from tfmemtop.ui.lines import Line, Panel, width_of
from tfmemtop.ui.palette import KEY, Glyphs


class KeyBar(Panel):
    """One line of keys and their words; on a narrow screen those that are needed least are left out."""

    DEFAULT_CSS = "KeyBar { height: 1; }"

    class Pressed(Message):
        """A key of the bar was clicked; *action* is what it does."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    keys: Sequence[Key] = ()
    _spots: tuple[tuple[int, int, str], ...] = ()

    def build(self, width: int, height: int) -> list[Line]:
        keys = list(self.keys)
        while keys and self._width(keys) > width:
            keys.remove(max(keys, key=lambda key: key.rank))
        line: Line = [Segment(" ")]
        spots = []
        x = 1
        for key in keys:
            word = key.footer
            taken = len(key.shown) + 1 + len(word)
            spots.append((x, x + taken, key.action))
            line += [Segment(key.shown, KEY), Segment(f" {word}  ")]
            x += taken + 2
        self._spots = tuple(spots)
        return [line]

    @staticmethod
    def _width(keys: Sequence[Key]) -> int:
        return 1 + sum(len(key.shown) + len(key.footer) + 3 for key in keys)

    def on_click(self, click: textual_events.Click) -> None:
        for start, end, action in self._spots:
            if start <= click.x < end:
                self.post_message(self.Pressed(action))


class HintLine(Panel):
    """The last line of another screen than the main one: its keys and their words, as many as fit."""

    DEFAULT_CSS = "HintLine { height: 1; }"

    def __init__(self, hints: Callable[[], list[tuple[str, str]]], *, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs)
        self._hints = hints

    def build(self, width: int, height: int) -> list[Line]:
        line: Line = [Segment(" ")]
        for key, word in self._hints():
            more = [Segment(key, KEY), Segment(f" {word}  ")]
            if width_of(line) + width_of(more) > width + 2:
                break
            line += more
        return [line]
