"""What the first line of the screen says, apart from names, settings and times. Pure."""

from tfmemtop.words.panels import WAITS

EVERY_PROCESS = "every process on the GPUs"
"""In place of a run, where nothing has been started."""

REPLAY = "REPLAY"
READ_ONLY = "READ-ONLY"
FROZEN = "FROZEN: Z resumes"
WAITS_FOR_INPUT = WAITS
ENGINE_GONE = "ENGINE GONE"

PHASES = {"running": "running", "stopping": "stopping", "releasing": "waiting for its memory", "ended": "ended"}
"""How a run stands, by the name of its phase."""


def from_outside(*, hook: bool) -> str:
    """The process was not started by tfmemtop; with *hook*, the hook was put into it."""
    return "HOOK PUT IN" if hook else "FROM OUTSIDE"


def searching(number: int, tries: int) -> str:
    """Which try of a search is under way."""
    return f"FIT try {number} of {tries}"


def killed_in(seconds: float) -> str:
    """When a run that does not end is killed."""
    return f", killed in {seconds:.0f} s"
