"""The dialogs that change the next run. The result of each is the changed next run."""

from collections.abc import Sequence

from tfmemtop.experiments.session.next_run import NextRun, free_after, whole_memory
from tfmemtop.findings.proposed_limit import basis, suggested_limits
from tfmemtop.limits import FreeGpus, SuggestedLimit, typed
from tfmemtop.reports.devices import limited_memory
from tfmemtop.state import State
from tfmemtop.state.views import host_memory
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.screens.choice_dialog import InputDialog
from tfmemtop.units import format_bytes

_GPUS_LISTED = 16


def whose_limit(on_gpu: bool) -> str:
    """Return what a memory limit applies to."""
    return "each GPU" if on_gpu else "the CPU pool"


def limit_prompt(on_gpu: bool, whole: int | None) -> str:
    """Return how to type a limit; *whole* is the memory there is, in bytes."""
    return f"For {whose_limit(on_gpu)}, of {format_bytes(whole)}: a size such as 4G or 3500M, or 50%"


def limit_suggestions(suggested: Sequence[SuggestedLimit], memory: str | None) -> list[tuple[str, str]]:
    """Return limits to choose from: the text to type, and what it rests on.

    *memory* names the memory of which a percentage is a share, if that is not all of it.
    """
    picks = [
        ("50%", f"half of {memory or 'the memory there is'}"),
        ("25%", "a quarter of it"),
        ("", "as the script says"),
    ]
    return [(typed(limit.size), basis(limit)) for limit in suggested] + picks


def limit_dialog(
    state: State, upcoming: NextRun, fitted: SuggestedLimit | None, glyphs: Glyphs
) -> InputDialog[NextRun]:
    """Return the dialog for the limit of the next run, which the user types or picks.

    *fitted* is the limit that a search has found.
    """
    suggested = suggested_limits(state, upcoming.settings, upcoming.argv)
    if fitted:
        suggested = [fitted, *(one for one in suggested if not one.is_guess)]
    memory = None if state.devices else limited_memory(host_memory(state))
    has_gpus = bool(state.devices)
    limit = upcoming.settings.limit(has_gpus=has_gpus)
    return InputDialog(
        "Memory limit of the next run",
        text=[limit_prompt(has_gpus, whole_memory(state, upcoming.settings)), *_as_shares(upcoming, state)],
        value="" if limit is None else typed(limit),
        replaces=True,
        read=lambda text: upcoming.with_limit(text, state),
        suggestions=limit_suggestions(suggested, memory),
        glyphs=glyphs,
    )


def _as_shares(upcoming: NextRun, state: State) -> list[str]:
    """Return how other frameworks than TensorFlow get the limit: JAX and PyTorch as a share of the smallest GPU."""
    names = [one.name.title for one in upcoming.settings.frameworks if "limit" in one.takes and state.devices]
    return [f"{' and '.join(names)}: passed on as a share of the smallest GPU that the run sees"] if names else []


def gpus_dialog(state: State, upcoming: NextRun, glyphs: Glyphs) -> InputDialog[NextRun]:
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
        value="" if gpus is None else ",".join(map(str, gpus)) or "none",
        replaces=True,
        read=lambda text: upcoming.with_gpus(text, state),
        suggestions=[("", "as the script and its environment say"), *each[:_GPUS_LISTED], ("none", "hide every GPU")],
        glyphs=glyphs,
    )


def command_line_dialog(upcoming: NextRun, glyphs: Glyphs) -> InputDialog[NextRun]:
    """Return the dialog for the command line and the environment of the next run."""
    return InputDialog(
        "Command line of the next run",
        text=["Variables may stand before the command: BATCH=64 python train.py --epochs 3"],
        value=upcoming.command_line(),
        read=upcoming.with_command_line,
        glyphs=glyphs,
    )
