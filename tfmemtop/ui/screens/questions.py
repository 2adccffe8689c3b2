"""The dialogs that ask: end a run, quit, send a signal; and what the next run is to be."""

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

from textual.binding import Binding, BindingType

from tfmemtop.events.commands import GRACE_S
from tfmemtop.exit_codes import EFFECTS
from tfmemtop.experiments.session.next_run import NextRun, free_after, whole_memory
from tfmemtop.findings.proposed_limit import basis, suggested_limits
from tfmemtop.limits import FreeGpus, SuggestedLimit, typed, typed_gpus
from tfmemtop.reports.settings import SCRIPTS_OWN, chosen
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.model import RunState
from tfmemtop.state.process_rows import processes
from tfmemtop.state.program import short, title
from tfmemtop.state.views import host_memory
from tfmemtop.ui.draw.glyphs import ARROWS
from tfmemtop.ui.draw.lines import fit
from tfmemtop.ui.screens.choice_dialog import InputDialog, Option, OptionsDialog
from tfmemtop.ui.screens.dialog import Hint
from tfmemtop.units import format_bytes


class Leaving(Enum):
    """What happens to the script when the user quits."""

    LEAVE = "leave"
    STOP = "stop"
    STAY = "stay"


def relaunch_dialog(state: State, run: RunState, upcoming: NextRun) -> OptionsDialog[bool]:
    """Return the dialog that asks whether to end *run* so that *upcoming* can start."""
    alive = sum(1 for row in processes(state) if row.of_run and not row.process.gone)
    count = "1 process" if alive == 1 else f"{alive} processes"
    settings = " · ".join(chosen(upcoming.settings) or [SCRIPTS_OWN])
    ends = f"end it ({count}), then start run {run.run + 1} with {settings}"
    text = [f"{short(title(run))} gets TERM, then KILL after {GRACE_S:.0f} s."]
    options = [Option("relaunch", True, ends, "r"), Option("stay", False, "let it run", "n")]
    return OptionsDialog(f"Run {run.run} is still running", options, text=text)


def leave_dialog(state: State) -> OptionsDialog[Leaving]:
    """Return the dialog that asks what happens to the script when the user quits."""
    session, run = state.session, state.run
    kept = [short(title(run))] if run else []
    kept += [f"Its output is kept in {session.output_path}"] if session and session.output_path else []
    attach = f"tfmemtop attach {session.id if session else ''} brings the screen back"
    options = [
        Option("leave it running", Leaving.LEAVE, attach, "l"),
        Option("stop it", Leaving.STOP, f"TERM, then KILL after {GRACE_S:.0f} s; then quit", "s"),
        Option("do not quit", Leaving.STAY, "go on watching", "n"),
    ]
    return OptionsDialog("The script is still running", options, text=kept)


_NAMED = 6
"""The most processes that are listed one by one. If there are more, their pids follow in one paragraph."""


class SignalScreen(OptionsDialog[int]):
    """k: choose a signal, see which processes will receive it, and send it with Enter. Nothing else sends it.

    Its result is the signal's number, or ``None`` to send nothing.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "cancel", show=False)]
    click_chooses_only = True

    def __init__(self, pids: Sequence[int], names: Sequence[str]) -> None:
        """*names* are the commands of *pids*, in the same order."""
        self._count = len(pids)
        text = ["To this process:" if self._count == 1 else f"To these {self._count} processes:"]
        for pid, name in list(zip(pids, names, strict=True))[:_NAMED]:
            text.append(f"{pid:>8}  {fit(safe(name) or '(command unknown)', 58)}")
        if rest := pids[_NAMED:]:
            text.append(" ".join(f"{pid:>7}" for pid in rest))
        options = [Option(number.name, int(number), effect, str(int(number))) for number, effect in EFFECTS.items()]
        super().__init__("Send a signal", options, text=text, width=72)

    def hints(self) -> list[Hint]:
        whom = "it" if self._count == 1 else f"all {self._count}"
        sends = f"send {self.options[self.content.at or 0].label} to {whom}"
        return [("Enter", sends), ("Esc", "send nothing"), (ARROWS, "choose")]

    def on_option_list_option_highlighted(self) -> None:
        self.redraw()

    def typed(self, character: str) -> bool:
        return False  # a number alone sends nothing


_GPUS_LISTED = 16


def whose_limit(on_gpu: bool) -> str:
    """Return what a memory limit applies to."""
    return "each GPU" if on_gpu else "the CPU pool"


def limit_dialog(state: State, upcoming: NextRun, fitted: SuggestedLimit | None) -> InputDialog[NextRun]:
    """Return the dialog for the limit of the next run, which the user types or picks.

    *fitted* is the limit that a search has found.
    """
    suggested = suggested_limits(state, upcoming.settings, upcoming.argv)
    if fitted:
        suggested = [fitted, *(one for one in suggested if not one.is_guess)]
    memory = None if state.devices else host_memory(state).limited
    shares = ("50%", f"half of {memory or 'the memory there is'}"), ("25%", "a quarter of it")
    has_gpus = bool(state.devices)
    whole = format_bytes(whole_memory(state, upcoming.settings))
    limit = upcoming.settings.limit(has_gpus=has_gpus)
    return InputDialog(
        "Memory limit of the next run",
        text=[
            f"For {whose_limit(has_gpus)}, of {whole}: a size such as 4G or 3500M, or 50%",
            *_as_shares(upcoming, state),
        ],
        value="" if limit is None else typed(limit),
        replaces=True,
        read=lambda text: upcoming.with_limit(text, state),
        suggestions=[*((typed(limit.size), basis(limit)) for limit in suggested), *shares, ("", "as the script says")],
    )


def _as_shares(upcoming: NextRun, state: State) -> list[str]:
    """Return how other frameworks than TensorFlow get the limit: JAX and PyTorch as a share of the smallest GPU."""
    names = [one.name.title for one in upcoming.settings.frameworks if "limit" in one.takes and state.devices]
    return [f"{' and '.join(names)}: passed on as a share of the smallest GPU that the run sees"] if names else []


def gpus_dialog(state: State, upcoming: NextRun) -> InputDialog[NextRun]:
    """Return the dialog for the GPUs that are visible to the next run."""
    gpus = upcoming.settings.gpus
    each = [(str(index), f"only {device.info.name}") for index, device in state.devices.items()]
    free = free_after(state)
    if len(free) > 1:
        (most,) = FreeGpus().chosen(free)
        each.insert(
            0, (str(FreeGpus()), f"GPU {most}, with the most free memory after this run: {format_bytes(free[most])}")
        )
    return InputDialog(
        "GPUs the next run may see",
        text=["Numbers as on this screen, in the order that TensorFlow should use: 0,2"],
        value="" if gpus is None else typed_gpus(gpus),
        replaces=True,
        read=lambda text: upcoming.with_gpus(text, state),
        suggestions=[("", "as the script and its environment say"), *each[:_GPUS_LISTED], ("none", "hide every GPU")],
    )


def command_line_dialog(upcoming: NextRun) -> InputDialog[NextRun]:
    """Return the dialog for the command line and the environment of the next run."""
    return InputDialog(
        "Command line of the next run",
        text=["Variables may stand before the command: BATCH=64 python train.py --epochs 3"],
        value=upcoming.command_line(),
        read=upcoming.with_command_line,
    )
