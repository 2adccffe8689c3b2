"""Questions about a run that is still running: whether to end it for the next run, or when the user quits."""

from enum import Enum

from tfmemtop.events.commands import GRACE_S
from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.reports.settings import SCRIPTS_OWN, chosen
from tfmemtop.state import State
from tfmemtop.state.model import RunState
from tfmemtop.state.process_rows import kernels, processes
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.kernel_actions import server_ends
from tfmemtop.ui.screens import dialog_box as dialogs
from tfmemtop.ui.screens.dialog import Option, OptionsDialog


class Leaving(Enum):
    """What happens to the script when the user quits."""

    LEAVE = "leave"
    STOP = "stop"
    STAY = "stay"


def relaunch_dialog(state: State, run: RunState, upcoming: NextRun, glyphs: Glyphs) -> OptionsDialog[bool]:
    """Return the dialog that asks whether to end *run* so that *upcoming* can start."""
    alive = sum(1 for row in processes(state) if row.of_run and not row.gone)
    settings = chosen(upcoming.settings) or [SCRIPTS_OWN]
    options = [
        Option("relaunch", value=True, description=dialogs.relaunch_ends(run.run, alive, settings), key="r"),
        Option("stay", value=False, description=dialogs.STAYS, key="n"),
    ]
    text = [dialogs.relaunch_how(GRACE_S)]
    if found := kernels(state):
        text.insert(0, server_ends(found))
    return OptionsDialog(dialogs.relaunch(run.run), options, text=text, glyphs=glyphs)


def leave_dialog(state: State, glyphs: Glyphs) -> OptionsDialog[Leaving]:
    """Return the dialog that asks what happens to the script when the user quits."""
    session = state.session
    kept = [dialogs.output_kept(session.output_path)] if session and session.output_path else []
    described = {
        Leaving.LEAVE: (dialogs.LEAVE_RUNNING, "l", dialogs.attach(session.id if session else "")),
        Leaving.STOP: (dialogs.LEAVE_STOPPED, "s", dialogs.stop(GRACE_S)),
        Leaving.STAY: (dialogs.LEAVE_NOT, "n", dialogs.LEAVE_STAY),
    }
    options = [Option(label, choice, told, key) for choice, (label, key, told) in described.items()]
    return OptionsDialog(dialogs.LEAVE, options, text=kept, glyphs=glyphs)
