"""The text in a graph: its scale, what lies above it, its time, and its marks."""

from tfmemtop.state.views import DevicePanel
from tfmemtop.units import format_duration, format_short

LIMIT = "limit"
NOW = "now"
OUT_OF_MEMORY = "out of memory"
WHOLE_RUN = "whole run"
WHOLE_SESSION = "since the start"
SINCE_START = "since each run's start"


def run_began(number: int) -> str:
    """Return the mark at a run's start: ``run 2``."""
    return f"run {number}"


def run_ended(number: int) -> str:
    """Return the mark at a run's end: ``run 2 ended``."""
    return f"run {number} ended"


def ended_after(seconds: float) -> str:
    """Return the text at the right end of the graph of a run that has ended."""
    return f"ended after {format_duration(seconds)}"


def span(seconds: float) -> str:
    """Return the length of time that a graph shows: ``45 s``, ``20 min``, ``01:30:00``."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds % 60 == 0 and seconds < 3600 else format_duration(seconds)


def scale(whole: int | None, halvings: int, follows: str = "") -> str:
    """Return the scale: ``scale: 1/64 of 140.4G``, ``scale: all 140.4G``; *follows* is a word for what sets it."""
    name = f"scale ({follows}):" if follows else "scale:"
    if whole is None:
        return f"{name} what is used"
    return f"{name} 1/{1 << halvings} of {format_short(whole)}" if halvings else f"{name} all {format_short(whole)}"


def above(name: str, size: int) -> str:
    """Return what lies above the scale: ``limit 137.5G``, ``card 140.4G``."""
    return f"{name} {format_short(size)}"


def whole(panel: DevicePanel) -> str:
    """Return what the whole of a graph's scale is: a card; for the CPU pool its limit, or else the host's memory."""
    return "card" if panel.gpu else LIMIT if panel.capacity == panel.last_limit else "host"


def reaches(size: int) -> str:
    """Return the mark for memory that is higher than the scale; *size* is its highest value in bytes."""
    return f"up to {format_short(size)}"
