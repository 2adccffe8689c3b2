"""The text of the screen's first line, apart from names, settings and times. Pure."""

from tfmemtop.state.views import RunPhase
from tfmemtop.words.panels import WAITS

EVERY_PROCESS = "every process on the GPUs"
"""The text in place of a run, where none has been started."""

REPLAY = "REPLAY"
READ_ONLY = "READ-ONLY"
FROZEN = "FROZEN: Z resumes"
WAITS_FOR_INPUT = WAITS
ENGINE_GONE = "ENGINE GONE"

PHASES = {
    RunPhase.RUNNING: "running",
    RunPhase.STOPPING: "stopping",
    RunPhase.RELEASING: "waiting for its memory",
    RunPhase.ENDED: "ended",
}
"""The text for each phase of a run."""


def from_outside(*, hook: bool) -> str:
    """Return the mark of a process that tfmemtop did not start; with *hook*, the hook was put into it."""
    return "HOOK PUT IN" if hook else "FROM OUTSIDE"


def searching(number: int, tries: int) -> str:
    """Return which try of a search is running."""
    return f"FIT try {number} of {tries}"


def killed_in(seconds: float) -> str:
    """Return in how many seconds a run that does not end is killed."""
    return f", killed in {seconds:.0f} s"
