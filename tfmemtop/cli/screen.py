"""Checks the terminal on which the screen is drawn, and computes the size of the script's own terminal in it."""

import os
import sys

from tfmemtop.cli import Refusal, usage
from tfmemtop.ui.draw.layout import first_size

SMALLEST = (40, 12)
"""The smallest terminal, in columns and rows, on which the screen is of use."""


def terminal_size(instead: str = usage.INSTEAD) -> tuple[int, int]:
    """Return columns and rows of the terminal for the screen. *instead* is the advice in a refusal.

    Raises:
        Refusal: there is no terminal, the screen cannot be drawn on it, or it is too small.
    """
    for stream, name in ((sys.stdin, "input"), (sys.stdout, "output")):
        if stream is None or stream.closed or not stream.isatty():
            raise Refusal(usage.no_terminal(name, instead))
    if os.environ.get("TERM", "dumb") in ("dumb", ""):
        raise Refusal(usage.cannot_draw(instead))
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    if columns == 0 or rows == 0:  # the terminal reports no size, for example a serial line
        return 80, 24
    if columns < SMALLEST[0] or rows < SMALLEST[1]:
        raise Refusal(usage.too_small((columns, rows), SMALLEST, instead))
    return columns, rows


def script_terminal_size() -> tuple[int, int]:
    """Return columns and rows of the script's own terminal, as they will be after the screen is first drawn.

    Raises:
        Refusal: there is no terminal, the screen cannot be drawn on it, or it is too small.
    """
    return first_size(*terminal_size(), _gpus())


def _gpus() -> int:
    """Return the number of GPUs in the driver's list in ``/proc``. A call to the driver would delay the start."""
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))  # noqa: PTH208 (only their number)
    except OSError:
        return 0
