"""Whether there is a terminal to draw on, and what of it the script has."""

import os
import sys

from tfmemtop.options import Refusal
from tfmemtop.ui.layout import first_size

SMALLEST = (60, 16)
"""Columns and rows below which nothing of use could be shown."""

_INSTEAD = "use tfmemtop record -o FILE -- COMMAND…, or tfmemtop --once"


def terminal_size() -> tuple[int, int]:
    """Columns and rows of the terminal that the screen will be drawn on.

    Raises:
        Refusal: there is none, it cannot be drawn on, or it is too small.
    """
    for stream, name in ((sys.stdin, "standard input"), (sys.stdout, "standard output")):
        if stream is None or stream.closed or not stream.isatty():
            raise Refusal(f"{name} is no terminal: {_INSTEAD}")
    if os.environ.get("TERM", "dumb") in ("dumb", ""):
        raise Refusal(f"the terminal calls itself dumb (TERM) and cannot be drawn on: {_INSTEAD}")
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    if columns == 0 or rows == 0:  # one that does not know its size, such as a serial line
        return 80, 24
    if columns < SMALLEST[0] or rows < SMALLEST[1]:
        raise Refusal(
            f"the terminal has {columns}×{rows} cells; the screen needs {SMALLEST[0]}×{SMALLEST[1]}: "
            f"make it larger, or {_INSTEAD}"
        )
    return columns, rows


def script_terminal_size() -> tuple[int, int]:
    """Columns and rows that the script's own terminal has on that one once it is drawn.

    Raises:
        Refusal: as :func:`terminal_size`.
    """
    return first_size(*terminal_size(), _gpus())


def _gpus() -> int:
    """How many there are by the driver's own list; asking the driver itself would delay the start."""
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))  # noqa: PTH208 (only their number)
    except OSError:
        return 0
