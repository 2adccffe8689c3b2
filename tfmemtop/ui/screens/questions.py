"""The questions with a list of answers: end a run, quit, send a signal."""

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

from textual.binding import Binding, BindingType

from tfmemtop.events.commands import GRACE_S
from tfmemtop.exit_codes import EFFECTS
from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.reports.settings import SCRIPTS_OWN, chosen
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.model import RunState
from tfmemtop.state.process_rows import processes
from tfmemtop.ui.draw.lines import fit
from tfmemtop.ui.draw.palette import UNICODE, Glyphs
from tfmemtop.ui.screens.choice_dialog import Option, OptionsDialog
from tfmemtop.ui.screens.dialog import Hint


class Leaving(Enum):
    """What happens to the script when the user quits."""

    LEAVE = "leave"
    STOP = "stop"
    STAY = "stay"


def relaunch_dialog(state: State, run: RunState, upcoming: NextRun, glyphs: Glyphs) -> OptionsDialog[bool]:
    """Return the dialog that asks whether to end *run* so that *upcoming* can start."""
    alive = sum(1 for row in processes(state) if row.of_run and not row.process.gone)
    count = "1 process" if alive == 1 else f"{alive} processes"
    settings = " · ".join(chosen(upcoming.settings) or [SCRIPTS_OWN])
    ends = f"end it ({count}), then start run {run.run + 1} with {settings}"
    text = [f"It gets TERM, then KILL after {GRACE_S:.0f} s."]
    options = [Option("relaunch", True, ends, "r"), Option("stay", False, "let it run", "n")]
    return OptionsDialog(f"Run {run.run} is still running", options, text=text, glyphs=glyphs)


def leave_dialog(state: State, glyphs: Glyphs) -> OptionsDialog[Leaving]:
    """Return the dialog that asks what happens to the script when the user quits."""
    session = state.session
    kept = [f"Its output is kept in {session.output_path}"] if session and session.output_path else []
    attach = f"tfmemtop attach {session.id if session else ''} brings the screen back"
    options = [
        Option("leave it running", Leaving.LEAVE, attach, "l"),
        Option("stop it", Leaving.STOP, f"TERM, then KILL after {GRACE_S:.0f} s; then quit", "s"),
        Option("do not quit", Leaving.STAY, "go on watching", "n"),
    ]
    return OptionsDialog("The script is still running", options, text=kept, glyphs=glyphs)


_NAMED = 6
"""The most processes that are listed one by one. If there are more, their pids follow in one paragraph."""


class SignalScreen(OptionsDialog[int]):
    """k: choose a signal, see which processes will receive it, and send it with Enter. Nothing else sends it.

    Its result is the signal's number, or ``None`` to send nothing.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "cancel", show=False)]
    click_chooses_only = True

    def __init__(self, pids: Sequence[int], names: Sequence[str], *, glyphs: Glyphs = UNICODE) -> None:
        """*names* are the commands of *pids*, in the same order."""
        self._count = len(pids)
        self._digits = ""
        text = ["To this process:" if self._count == 1 else f"To these {self._count} processes:"]
        for pid, name in list(zip(pids, names, strict=True))[:_NAMED]:
            text.append(f"{pid:>8}  {fit(safe(name) or '(command unknown)', 58, glyphs)}")
        if rest := pids[_NAMED:]:
            text.append(" ".join(f"{pid:>7}" for pid in rest))
        options = [Option(number.name, int(number), effect, str(int(number))) for number, effect in EFFECTS.items()]
        super().__init__("Send a signal", options, text=text, glyphs=glyphs, width=72)

    def hints(self) -> list[Hint]:
        whom = "it" if self._count == 1 else f"all {self._count}"
        sends = f"send {self.options[self.content.at or 0].label} to {whom}"
        return [("Enter", sends), ("Esc", "send nothing"), (f"{self.glyphs.up}{self.glyphs.down} 0-9", "choose")]

    def on_option_list_option_highlighted(self) -> None:
        self.redraw()

    def typed(self, character: str) -> bool:
        """Choose the signal whose number is typed; two digits in a row make one number. Nothing is sent."""
        if not (character.isascii() and character.isdigit()):
            self._digits = ""
            return False
        for number in (self._digits + character, character):
            if (index := self.indices.get(number)) is not None:
                self._digits = number
                self.content.at = index
                return True
        self._digits = character
        return True
