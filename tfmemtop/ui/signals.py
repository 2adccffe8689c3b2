"""k: choose a signal, see whom it goes to, send it with Enter; nothing else sends it."""

import signal
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType

from tfmemtop.safe import safe
from tfmemtop.ui.dialog import Hint, Option, OptionsDialog
from tfmemtop.ui.lines import Line, fit
from tfmemtop.ui.palette import BOLD, DIM, UNICODE, Glyphs

_NAMED = 6
"""Processes listed one by one; of more, all pids follow in one paragraph."""

_SIGNALS: tuple[tuple[signal.Signals, str], ...] = (
    (signal.SIGTERM, "end; the process may clean up"),
    (signal.SIGKILL, "end at once; it can do nothing about it"),
    (signal.SIGINT, "as Ctrl-C in its terminal"),
    (signal.SIGHUP, "its terminal is gone"),
    (signal.SIGQUIT, "end with a core dump"),
    (signal.SIGUSR1, "the program's own"),
    (signal.SIGUSR2, "the program's own"),
    (signal.SIGSTOP, "pause; keeps its memory"),
    (signal.SIGCONT, "go on after a pause"),
    (signal.SIGABRT, "abort"),
    (signal.SIGALRM, "alarm"),
    (signal.SIGPIPE, "nobody reads any more"),
    (signal.SIGTSTP, "as Ctrl-Z in its terminal"),
    (signal.SIGWINCH, "its terminal has another size"),
)


class SignalScreen(OptionsDialog[int]):
    """Closes with the signal's number, or ``None`` if nothing is to be sent."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "cancel", show=False)]

    def __init__(self, pids: Sequence[int], names: Sequence[str], *, glyphs: Glyphs = UNICODE) -> None:
        """*names* are the commands of *pids*, in the same order."""
        options = [Option(number.name, int(number), told, str(int(number))) for number, told in _SIGNALS]
        super().__init__("Send a signal", options, glyphs=glyphs, width=72)
        self._processes = list(zip(pids, names, strict=True))
        self._digits = ""

    def hints(self) -> list[Hint]:
        arrows = f"{self.glyphs.up}{self.glyphs.down}"
        whom = "it" if len(self._processes) == 1 else f"all {len(self._processes)}"
        send = f"send {self.options[self.chosen].label} to {whom}"
        return [("Enter", send), ("Esc", "send nothing"), (f"{arrows} 0-9", "choose")]

    def above(self, width: int) -> list[Line]:
        count = len(self._processes)
        lines: list[Line] = [[Segment("To this process:" if count == 1 else f"To these {count} processes:")]]
        for pid, name in self._processes[:_NAMED]:
            command = fit(safe(name) or "(command unknown)", max(1, width - 10), self.glyphs)
            lines.append([Segment(f"{pid:>8}", BOLD), Segment("  " + command)])
        rest = [pid for pid, _ in self._processes[_NAMED:]]
        per_line = max(1, (width - 1) // 8)
        rows = ["".join(f"{pid:>8}" for pid in rest[at : at + per_line]) for at in range(0, len(rest), per_line)]
        return [*lines, *([Segment(row, DIM)] for row in rows), []]

    def clicked(self, index: int) -> None:
        """A click only chooses: sending takes Enter."""

    def typed(self, character: str) -> bool:
        """Digits choose the signal of that number; two in a row make one number. Nothing is sent."""
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
