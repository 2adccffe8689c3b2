"""The text about why a key on the screen does nothing now: one or two sentences, where ``[K]`` names another key."""

from collections.abc import Sequence

from tfmemtop.findings.attached import READ_ONLY
from tfmemtop.frameworks import FrameworkName, UsedFramework

GROWTH_NEEDS_GPU = "Growth is a setting for GPUs, and this machine has none. [L] limits the CPU pool."
NO_GPU_TO_CHOOSE = "This machine has no GPU to choose."
NOTHING_TO_SET = "There is no script to set anything for: tfmemtop only watches."
NOTHING_TO_RELAUNCH = "There is no script to relaunch: tfmemtop only watches."
SEARCH_GOES_ON = "A search for the smallest limit is under way. [F] shows it and can stop it."
NOTHING_READS = "No script is running to read what is typed."
NOTHING_IS_SENT = "Nothing can be typed here: this screen changes nothing."
HAS_ENDED = "This process has already ended."

GROWTH, LIMIT, ALLOCATOR, XLA_REPORT, SEARCH = "growth", "limit", "allocator", "XLA's report", "search"
NO_PAGE = "A page is written from a recording, and this session has none."

FIT_WITHOUT_ENGINE = "The engine has gone. Nothing can be started any more."
FIT_WITHOUT_SCRIPT = "There is no script to find a limit for: tfmemtop only watches."

AFTER_RESTART = "The setting takes effect at the kernel's next restart. Restart it where the notebook is open."
NOT_RECOGNISED = (
    "VS Code gives a kernel another name at each start, so no choice here can reach the next one. "
    "Set it for the kernelspec: tfmemtop kernel install --help."
)
NO_COMMAND_LINE = "The command line of a kernel is Jupyter's. Growth, limit, allocator and GPUs can be chosen."
NO_SEARCH = "A search runs a program again and again. A kernel is started by Jupyter. [L] sets its limit."


def not_for(frameworks: Sequence[UsedFramework], setting: str, *, has_gpus: bool) -> str:
    """Return why the next run cannot have a *setting*, one of those above; its *frameworks* are not TensorFlow."""
    names = " and ".join(framework.name.title for framework in frameworks)
    if not has_gpus:
        return f"No GPU is known here, so there is nothing to set for {names}."
    torch = next((framework for framework in frameworks if framework.name is FrameworkName.PYTORCH), None)
    if torch and setting == GROWTH:
        return "Not for PyTorch: its pool always grows."
    if torch and setting == LIMIT:
        return (
            f"Not for PyTorch {torch.version}, which takes a limit from its environment from 2.10 on. In the script: "
            "torch.cuda.set_per_process_memory_fraction(0.5)."
        )
    return f"Not for {names}: {setting} is TensorFlow's."


def page_not_written(error: OSError) -> str:
    """Return why the process that writes a page could not be started."""
    return f"The page cannot be written: {error.strerror or error}."


def restart_yourself(settings: Sequence[str]) -> str:
    """Return why a kernel is not relaunched, and which *settings* its next start has."""
    return f"Restart the kernel where the notebook is open. Its next start: {' · '.join(settings)}."


def no_attach(pid: int, *, live: bool) -> str:
    """Return why a key cannot read another process from outside: the session has a script, or is not *live*."""
    if not live:
        return "Only a live screen can read a process."
    return f"This session has a script of its own. In another terminal: tfmemtop attach {pid}"


def no_change(*, replay: bool, outside: bool = False) -> str:
    """Return why a key cannot change the script or a process: a replay, a read-only screen, or a process not ours."""
    if outside and not replay:
        return READ_ONLY
    if replay:
        return "This is a recording: nothing in it can be changed."
    return "This screen is read-only: no key changes the script or a process."


def fit_impossible(reason: str) -> str:
    """Return why a search would find nothing under the settings of the next run; *reason* is what prevents it."""
    return f"{reason}. [A] changes it for the next run."


def not_remembered(error: OSError) -> str:
    """Return the error if the user's choices on the screen could not be written to their file."""
    return f"what you chose on the screen is not remembered: {error.strerror or error}"
