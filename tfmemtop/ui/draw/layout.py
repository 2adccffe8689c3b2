"""How the panels share the screen. Pure, and light: the script's terminal has its size from here before it starts.

On a small screen the panels give way in this order: the findings keep a quarter, the allocators go
first, then the graph shrinks, then the process table, then the output; nothing overlaps.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

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

_DEVICES_LEAST = 2
"""Lines that the devices keep, if they want them, while anything else may shrink."""
_SAID_WITHOUT_GPU = 4
"""Lines, at most, of what is said where there is no device; they are kept likewise."""
_WITHOUT_GPU = 6
"""The same with a bar and a legend of the host's memory."""
_TABLE_LEAST = 3
_EMPTY = 2
"""Lines of an output that is still empty."""
_GRAPH_ALONE, _GRAPH_AMONG_OTHERS = 13, 7  # lines it likes
_FINDING, _FINDING_NARROW = 3, 4  # lines of a finding with its title
_COLUMN_LEAST = 72  # cells of a device beside others


class Heights(NamedTuple):
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
    devices: int,
    processes: int,
    why_wanted: int,
    allocators: bool,
    output: bool,
) -> Heights:
    """Share *height* lines. *why_wanted* is lines, *processes* rows of the table.

    *devices_wanted* says how many of the lines there are for them the *devices* put to use.
    """
    side_by_side = width >= SIDE_BY_SIDE and allocators and output
    allocators = allocators and (side_by_side or height >= 36 or not output)
    why = min(why_wanted, max(3, height // 4))
    room = max(0, height - why)
    lower = 0 if not (allocators or output) else max(4, room * 2 // 5)
    table = min(processes + 2, max(4, room // 4)) if lower else min(processes + 2, max(4, room // 2))
    least = devices_wanted(_DEVICES_LEAST if devices else _SAID_WITHOUT_GPU)
    why, lower, table = _squeezed(height - least, why, lower, table)
    left = max(0, height - why - lower - table)
    upper = min(left, devices_wanted(left))
    # What the devices do not need goes to the output, else to the table.
    if lower:
        lower += left - upper
    else:
        table += left - upper
    if side_by_side:
        return Heights(upper, table, lower, lower, why, True)
    if allocators and output:
        first = min(7, lower // 3)
        return Heights(upper, table, first, lower - first, why, False)
    return Heights(upper, table, lower if allocators else 0, lower if output else 0, why, False)


def _squeezed(height: int, why: int, lower: int, table: int) -> tuple[int, int, int]:
    """Findings, output and table in *height* lines; what has too little room to tell anything goes altogether."""
    sizes = {"why": why, "lower": lower, "table": table}
    for name, least in (("lower", 2), ("why", 2), ("table", _TABLE_LEAST), ("lower", 0), ("why", 0)):
        lacking = sum(sizes.values()) - height
        if lacking > 0 and sizes[name] > least:
            sizes[name] = max(least, sizes[name] - lacking) if least else 0
    if sum(sizes.values()) > height:
        sizes["table"] = 0
    return sizes["why"], sizes["lower"], sizes["table"]


def without_empty(
    heights: Heights, *, allocators: int | None, output: bool, devices_wanted: Callable[[int], int]
) -> Heights:
    """*heights* once panels with nothing to show have given their lines to the devices.

    *allocators* is how many lines that panel has something for, ``None`` if any number; *output* whether there is any.
    The script's terminal keeps the size it has with the panel at its full height.
    """
    if heights.side_by_side:
        if output:
            return heights
        # An empty half of the screen goes to the other one.
        above = heights.allocators - _EMPTY
        heights = heights._replace(allocators=above, output=heights.output - above, side_by_side=False)
    upper = heights.allocators if allocators is None else min(heights.allocators, allocators)
    below = heights.output if output else min(heights.output, _EMPTY)
    spare = heights.allocators - upper + heights.output - below
    if not spare:
        return heights
    devices = max(heights.devices, devices_wanted(heights.devices + spare))
    spare -= devices - heights.devices
    # What the devices cannot use goes to the map, or stays where it was.
    if heights.allocators and (allocators is None or not heights.output):
        return heights._replace(devices=devices, allocators=upper + spare, output=below)
    return heights._replace(devices=devices, allocators=upper, output=below + spare)


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
                devices=devices,
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

    GRAPH = "graph"  # title, bar, legend and graph
    LEGEND = "legend"  # title, bar and legend
    BAR = "bar"  # title and bar, one legend for all
    LINE = "line"  # a line each


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
        return min(_WITHOUT_GPU, available)
    layout, columns = device_layout(devices, width, available)
    stacked = -(-devices // columns)
    if layout is Layout.GRAPH:
        wanted = stacked * (2 + words + (_GRAPH_ALONE if stacked == 1 else _GRAPH_AMONG_OTHERS))
    else:
        wanted = {Layout.LEGEND: 3 * stacked, Layout.BAR: 2 * stacked + 1, Layout.LINE: stacked + 2}[layout]
    return min(wanted, available)
