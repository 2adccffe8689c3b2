"""The text of the screen's dialogs: what they ask, and what each answer does."""

from collections.abc import Sequence

from tfmemtop.suggested import SuggestedLimit
from tfmemtop.units import format_bytes
from tfmemtop.words.limits import basis, typed

COPY_LINES = "copy the lines"
COPIED = "Copied, if the terminal lets programs set the clipboard."

LIMIT = "Memory limit of the next run"
LIMIT_AS_SCRIPT = "as the script says"
GPUS = "GPUs the next run may see"
GPUS_PROMPT = "Numbers as on this screen, in the order that TensorFlow should use: 0,2"
GPUS_AS_SCRIPT = "as the script and its environment say"
GPUS_NONE = "hide every GPU"
COMMAND_LINE = "Command line of the next run"
COMMAND_LINE_PROMPT = "Variables may stand before the command: BATCH=64 python train.py --epochs 3"

PICTURE = "The picture of the screen"
PICTURE_PROMPT = "The name of a new file. Its ending sets the format: .svg or .txt"
PICTURE_SVG = "in colour, for a browser"
PICTURE_TEXT = "plain text"
PICTURE_SUFFIX = "End the name in .svg for a picture, or in .txt for text."

STAYS = "let it run"
LEAVE = "The script is still running"
LEAVE_RUNNING = "leave it running"
LEAVE_STOPPED = "stop it"
LEAVE_NOT = "do not quit"
LEAVE_STAY = "go on watching"


def more_below(count: int) -> str:
    """Return how many lines of a dialog are below those that are shown."""
    return f"{count} more below"


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
    picks = [("50%", f"half of {memory or 'the memory there is'}"), ("25%", "a quarter of it"), ("", LIMIT_AS_SCRIPT)]
    return [(typed(limit.size), basis(limit)) for limit in suggested] + picks


def file_exists(name: str) -> str:
    """Return the error for the name of a file that exists already. The file is not changed."""
    return f"{name} exists already. Choose another name."


def file_refused(name: str, reason: str) -> str:
    """Return the error for a file that the system does not allow to be written."""
    return f"{name} cannot be written: {reason}."


def picture_written(name: str) -> str:
    """Return where the picture of the screen is stored."""
    return f"The picture is in {name}"


def only_gpu(name: str) -> str:
    """Return the text for the choice of a single GPU."""
    return f"only {name}"


def relaunch(run: int) -> str:
    """Return the title of the question whether to end *run* for the next one."""
    return f"Run {run} is still running"


def relaunch_ends(run: int, processes: int, settings: Sequence[str]) -> str:
    """Return what a relaunch does to *run*, which has that many *processes*; *settings* are the next run's."""
    count = f"{processes} process" + ("" if processes == 1 else "es")
    return f"end it ({count}), then start run {run + 1} with {' · '.join(settings)}"


def relaunch_how(grace_s: float) -> str:
    """Return how a run is ended; *grace_s* is the time in seconds that it has to end by itself."""
    return f"It gets TERM, then KILL after {grace_s:.0f} s."


def output_kept(path: str) -> str:
    """Return where the script's output is stored, to be read later."""
    return f"Its output is kept in {path}"


def attach(session: str) -> str:
    """Return the command that shows the screen again for a script that is left running."""
    return f"tfmemtop attach {session} brings the screen back"


def stop(grace_s: float) -> str:
    """Return what stopping the script does; *grace_s* is the time in seconds that it has to end by itself."""
    return f"TERM, then KILL after {grace_s:.0f} s; then quit"
