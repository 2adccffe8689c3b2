"""How the panels share the screen. Pure, and light: the script's terminal has its size from here before it starts.

On a small screen the panels give way in this order: the findings keep a quarter, the allocators go
first, then the graph shrinks, then the process table, then the output; nothing overlaps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

SIDE_BY_SIDE = 110
"""Columns from which allocators and output stand beside each other."""
AROUND = 2
"""Lines of header and key bar."""
WORDS_MOST = 3
"""Lines of a device's legend and note, at most."""
GRAPH_LEAST = 4
"""Lines of a graph worth drawing, axis included."""
GAP = 2
"""Cells between devices beside each other."""

_GRAPH_ALONE, _GRAPH_AMONG_OTHERS = 13, 7  # lines it likes
_FINDING, _FINDING_NARROW = 3, 4  # lines of a finding with its title
_COLUMN_LEAST = 72  # cells of a device beside others


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


def output_size(width: int, heights: Heights) -> tuple[int, int]:
    """Columns and rows of the script's terminal in its panel, which has a title; at least one of each."""
    return max(1, width // 2 if heights.side_by_side else width), max(1, heights.output - 1)


def first_size(width: int, height: int, devices: int) -> tuple[int, int]:
    """Columns and rows that the script's terminal has on a screen of that size, with *devices* GPUs.

    It fits with the script's process and with up to one finding: the first does not resize the terminal.
    """
    one = _FINDING if width >= SIDE_BY_SIDE else _FINDING_NARROW
    sizes = [
        output_size(
            width,
            arrange(
                width,
                height - AROUND,
                devices_wanted=lambda lines: devices_wanted(devices, width, WORDS_MOST, lines),
                processes=1,
                why_wanted=lines,
                allocators=True,
                output=True,
            ),
        )
        for lines in range(one + 1)
    ]
    return min(sizes)


class Layout(Enum):
    """How much each device shows."""

    GRAPH = "title, bar, legend and graph"
    LEGEND = "title, bar and legend"
    BAR = "title and bar, one legend for all"
    LINE = "a line each"


def device_layout(devices: int, width: int, height: int) -> tuple[Layout, int]:
    """How much each device shows, and how many stand beside each other: no more than serves that."""
    beside = range(1, max(1, min(devices, (width + GAP) // (_COLUMN_LEAST + GAP))) + 1)
    graphs = [(Layout.GRAPH, 3 + graph) for graph in (_GRAPH_AMONG_OTHERS, GRAPH_LEAST)]
    for layout, lines in (*graphs, (Layout.LEGEND, 3)):
        for columns in beside:
            if height >= -(-devices // columns) * lines:
                return layout, columns
    return (Layout.BAR if height >= devices * 2 + (devices > 1) else Layout.LINE), 1


def devices_wanted(devices: int, width: int, words: int, available: int) -> int:
    """How many of *available* lines serve the *devices* well, each with *words* lines of legend and note."""
    if not devices:
        return min(2, available)
    layout, columns = device_layout(devices, width, available)
    stacked = -(-devices // columns)
    if layout is Layout.GRAPH:
        wanted = stacked * (2 + words + (_GRAPH_ALONE if stacked == 1 else _GRAPH_AMONG_OTHERS))
    else:
        wanted = {Layout.LEGEND: 3 * stacked, Layout.BAR: 2 * stacked + 1, Layout.LINE: stacked + 2}[layout]
    return min(wanted, available)
