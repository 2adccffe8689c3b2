"""How the panels share the screen's height. Pure.

On a small screen the panels give way in this order: the findings keep a quarter, the allocators go
first, then the graph shrinks, then the process table, then the output; nothing overlaps.
"""

from collections.abc import Callable
from dataclasses import dataclass

SIDE_BY_SIDE = 110
"""Columns from which allocators and output stand beside each other."""


@dataclass(frozen=True, slots=True)
class Heights:
    """Lines of each panel; 0 hides it. Allocators and output share ``lower`` where they stand side by side."""

    devices: int
    processes: int
    allocators: int
    output: int
    why: int
    side_by_side: bool


def arrange(
    width: int,
    height: int,
    *,
    devices_wanted: Callable[[int], int],
    processes: int,
    why_wanted: int,
    allocators: bool,
    output: bool,
) -> Heights:
    """Share *height* lines. *why_wanted* is lines, *processes* rows of the table.

    *devices_wanted* says how many of the lines there are for them the devices put to use.
    """
    side_by_side = width >= SIDE_BY_SIDE and allocators and output
    allocators = allocators and (side_by_side or height >= 36 or not output)
    why = min(why_wanted, max(3, height // 4))
    room = max(0, height - why)
    lower_share = 0 if not (allocators or output) else max(4, room * 2 // 5)
    table = min(processes + 2, max(4, room // 4)) if lower_share else min(processes + 2, max(4, room // 2))
    left = max(0, room - lower_share - table)
    devices = min(left, devices_wanted(left))
    # What the devices do not need goes to the output, else to the table.
    if lower_share:
        lower_share += left - devices
    else:
        table += left - devices
    if side_by_side:
        return Heights(devices, table, lower_share, lower_share, why, True)
    if allocators and output:
        upper = min(7, lower_share // 3)
        return Heights(devices, table, upper, lower_share - upper, why, False)
    return Heights(devices, table, lower_share if allocators else 0, lower_share if output else 0, why, False)
