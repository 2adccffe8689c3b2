"""Whether there is a terminal to draw on."""

import os
import sys

from tfmemtop.options import Refusal

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
