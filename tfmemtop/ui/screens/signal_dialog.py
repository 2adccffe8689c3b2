"""k: choose a signal, see which processes will receive it, and send it with Enter. Nothing else sends it."""

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType

from tfmemtop.exit_codes import EFFECTS, TITLE, UNKNOWN_COMMAND, recipients, send
from tfmemtop.reports import labels
from tfmemtop.safe import safe
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, DIM, UNICODE, Glyphs
from tfmemtop.ui.screens.dialog import Hint, Option, OptionsDialog

_NAMED = 6
"""The most processes that are listed one by one. If there are more, their pids follow in one paragraph."""


class SignalScreen(OptionsDialog[int]):
    """The dialog for a signal. Its result is the signal's number, or ``None`` to send nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "cancel", show=False)]

    def __init__(self, pids: Sequence[int], names: Sequence[str], *, glyphs: Glyphs = UNICODE) -> None:
        """*names* are the commands of *pids*, in the same order."""
        options = [Option(number.name, int(number), told, str(int(number))) for number, told in EFFECTS.items()]
        super().__init__(TITLE, options, glyphs=glyphs, width=72)
        self._processes = list(zip(pids, names, strict=True))
        self._digits = ""

    def hints(self) -> list[Hint]:
        arrows = f"{self.glyphs.up}{self.glyphs.down}"
        sends = send(self.options[self.chosen].label, len(self._processes))
        return [("Enter", sends), ("Esc", labels.SEND_NOTHING), (f"{arrows} 0-9", "choose")]

    def above(self, width: int) -> list[Line]:
        count = len(self._processes)
        lines: list[Line] = [[Segment(recipients(count))]]
        for pid, name in self._processes[:_NAMED]:
            command = fit(safe(name) or UNKNOWN_COMMAND, max(1, width - 10), self.glyphs)
            lines.append([Segment(f"{pid:>8}", BOLD), Segment("  " + command)])
        rest = [pid for pid, _ in self._processes[_NAMED:]]
        per_line = max(1, (width - 1) // 8)
        rows = ["".join(f"{pid:>8}" for pid in rest[at : at + per_line]) for at in range(0, len(rest), per_line)]
        return [*lines, *([Segment(row, DIM)] for row in rows), []]

    def clicked(self, index: int) -> None:
        """Do nothing more: a click only chooses the signal, and only Enter sends it."""

    def typed(self, character: str) -> bool:
        """Choose the signal whose number is typed; two digits in a row make one number. Nothing is sent."""
        if not (character.isascii() and character.isdigit()):
            self._digits = ""
            return False
        for number in (self._digits + character, character):
            for index, option in enumerate(self.options):
                if option.key == number:
                    self._digits = number
                    self.select(index)
                    return True
        self._digits = character
        return True
