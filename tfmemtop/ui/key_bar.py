"""The last line: the keys. A click on one presses it."""

from collections.abc import Sequence

from rich.segment import Segment
from textual import events as textual_events
from textual.message import Message

from tfmemtop.ui.keys import Key
from tfmemtop.ui.lines import Line, Panel
from tfmemtop.ui.palette import DIM, KEY


class KeyBar(Panel):
    """One line of keys and their words; on a narrow screen the words go before the keys."""

    DEFAULT_CSS = "KeyBar { height: 1; }"

    class Pressed(Message):
        """A key of the bar was clicked; *action* is what it does."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    keys: Sequence[Key] = ()
    _spots: tuple[tuple[int, int, str], ...] = ()

    def build(self, width: int, height: int) -> list[Line]:
        words = [key.footer for key in self.keys]
        if self._width(words) > width:
            # Long words lose their end, all alike, until the line fits.
            for length in range(9, 2, -1):
                words = [key.footer[:length] for key in self.keys]
                if self._width(words) <= width:
                    break
        line: Line = [Segment(" ")]
        spots = []
        x = 1
        for key, word in zip(self.keys, words, strict=True):
            taken = len(key.shown) + 1 + len(word)
            spots.append((x, x + taken, key.action))
            line += [Segment(key.shown, KEY), Segment(f" {word}  ", DIM if key.steers and not self.enabled else None)]
            x += taken + 2
        self._spots = tuple(spots)
        return [line]

    enabled: bool = True
    """Whether keys that steer the script do anything."""

    def _width(self, words: Sequence[str]) -> int:
        return 1 + sum(len(key.shown) + len(word) + 3 for key, word in zip(self.keys, words, strict=True))

    def on_click(self, click: textual_events.Click) -> None:
        for start, end, action in self._spots:
            if start <= click.x < end:
                self.post_message(self.Pressed(action))
