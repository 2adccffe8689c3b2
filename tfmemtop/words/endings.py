"""The text about how a run ended. Pure."""

from tfmemtop.ending import Ending, Way
from tfmemtop.events import Leftover, StillHeld
from tfmemtop.units import format_bytes
from tfmemtop.words.outside import WENT_ON
from tfmemtop.words.signals import signal_name

RUNNING = "running"

UNSEEN = "how it ended is unknown"
"""For a recording that breaks off before the run's end."""


def ended(how: Ending | None, *, running: bool, left: bool) -> str:
    """Return how a run ended. Without an end, it is *running*, or tfmemtop has *left* it, or its end was not seen."""
    if how is not None:
        return ending(how)
    return RUNNING if running else WENT_ON if left else UNSEEN


def ending(how: Ending | None) -> str:
    """Return how a run ended: ``ended with exit code 1``, ``ended by SIGTERM``; ``running`` for ``None``."""
    if how is None:
        return RUNNING
    if how.way is Way.HOST_MEMORY:
        return "killed by the kernel: the host ran out of memory"
    if how.way is Way.UNKNOWN:
        return "ended; exit code unknown"
    if how.way is Way.SIGNAL:
        return f"ended by {signal_name(how.number or 0)}"
    behind = f" ({signal_name(how.signal)})" if how.signal is not None else ""
    return f"ended with exit code {how.number}{behind}"


def still_held(held: StillHeld) -> str:
    """Return what a run still holds after its end."""
    if held.leftover is Leftover.LISTED:
        size = f", {format_bytes(held.size)}" if held.size is not None else ""
        return f"GPU {held.gpu} still lists process {', '.join(map(str, held.pids))}{size}"
    if held.leftover is Leftover.MORE_USED:
        more = f"{format_bytes(held.size)} more" if held.size is not None else "more"
        return f"GPU {held.gpu} holds {more} than before the run"
    if held.leftover is Leftover.PROCESSES:
        return f"the kernel has not ended process {', '.join(map(str, held.pids))}"
    return "the driver does not answer, so it is unknown what is still held"
