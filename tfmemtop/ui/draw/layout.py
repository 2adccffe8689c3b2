"""How the panels share the screen. Pure, and light: the script's terminal gets its size from here before it starts.

The graphs take what the other panels do not need. Where the user hides the output or the allocators, the other one
gets fewer lines, and the graphs more.

On a small screen the allocators are hidden first; then the devices with their graphs shrink. If that is not enough,
the output shrinks, then the findings (which never take more than a quarter, or 3 lines), then the process table. Last,
these three are hidden in the same order. Nothing overlaps.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

SIDE_BY_SIDE = 110
"""The fewest columns with which allocators and output stand beside each other."""
AROUND = 2
"""Lines of header and key bar."""
WORDS_MOST = 3
"""The most lines of a device's legend and note."""
GRAPH_LEAST = 4
"""The fewest lines with which a graph is drawn, axis included."""
GAP = 2
"""Cells between devices beside each other."""

_DEVICES_LEAST = 2
"""Lines that the devices keep, if they need them, while another panel can still shrink."""
_SAID_WITHOUT_GPU = 4
"""The most lines of the text that is shown if there is no device. They are kept in the same way."""
_WITHOUT_GPU = 6
"""The most lines of that text with a bar and a legend of the host's memory."""
_TABLE_LEAST = 3
_EMPTY = 2
"""Lines of an output that is still empty."""
_DEVICE_LIKED = 17  # lines with which a device has a good graph
_GRAPH_AMONG_OTHERS = 7  # lines of a graph with which devices do not yet stand beside each other
_FINDING, _FINDING_NARROW = 3, 4  # lines of a finding with its title
_COLUMN_LEAST = 72  # cells of a device beside others


class Heights(NamedTuple):
    """Lines of each panel; 0 hides it. If ``side_by_side``, allocators and output stand beside each other."""

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
    """Share *height* lines among the panels.

    *why_wanted* is the lines of the findings, *processes* the rows of the table. *devices_wanted* takes the lines
    available to the *devices* and returns how many of them they can use.
    """
    lower_part = 0.4 if allocators and output else 0.25 if allocators or output else 0
    side_by_side = width >= SIDE_BY_SIDE and allocators and output
    allocators = allocators and (side_by_side or height >= 36 or not output)
    why = min(why_wanted, max(3, height // 4))
    room = max(0, height - why)
    lower = max(4, int(room * lower_part)) if lower_part else 0
    table = min(processes + 2, max(4, room // 4 if lower else max(room // 2, room - devices * _DEVICE_LIKED)))
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
    """Shrink findings, lower panels and table to *height* lines. A panel that is too small to be useful gets 0."""
    sizes = {"why": why, "lower": lower, "table": table}
    for name, least in (("lower", 2), ("why", 2), ("table", _TABLE_LEAST), ("lower", 0), ("why", 0)):
        lacking = sum(sizes.values()) - height
        if lacking > 0 and sizes[name] > least:
            sizes[name] = max(least, sizes[name] - lacking) if least else 0
    if sum(sizes.values()) > height:
        sizes["table"] = 0
    return sizes["why"], sizes["lower"], sizes["table"]


def without_empty(
    heights: Heights, *, allocators: int | None, output: bool, processes: int, devices_wanted: Callable[[int], int]
) -> Heights:
    """Return *heights* after panels with nothing to show have given their lines to the devices and the process table.

    *allocators* is how many lines that panel can use; ``None`` means any number. *output* is whether there is any.
    *processes* is the rows of the table. An output that is empty is hidden where the table lacks lines.
    The script's terminal keeps the size that it has with its panel at full height.
    """
    if heights.side_by_side:
        if output:
            return heights
        # The output's half is empty: the allocators get the whole width, and the output a few lines below them.
        above = heights.allocators - _EMPTY
        heights = heights._replace(allocators=above, output=heights.output - above, side_by_side=False)
    upper = heights.allocators if allocators is None else min(heights.allocators, allocators)
    below = heights.output if output else min(heights.output, _EMPTY)
    spare = heights.allocators - upper + heights.output - below
    if not spare:
        return heights
    wanted = processes + 2
    if not output and heights.processes + spare < wanted:
        spare, below = spare + below, 0
    table = max(heights.processes, min(wanted, heights.processes + spare))
    spare -= table - heights.processes
    devices = max(heights.devices, devices_wanted(heights.devices + spare))
    spare -= devices - heights.devices
    heights = heights._replace(devices=devices, processes=table, allocators=upper, output=below)
    # What is left goes to the allocators if they can use any number of lines, else to the output, else to the table.
    if upper and allocators is None:
        return heights._replace(allocators=upper + spare)
    if below:
        return heights._replace(output=below + spare)
    return heights._replace(processes=table + spare)


def output_size(width: int, heights: Heights) -> tuple[int, int]:
    """Return columns and rows of the script's terminal in its panel, at least 1 each. A title takes one line."""
    return max(1, width // 2 if heights.side_by_side else width), max(1, heights.output - 1)


def first_size(width: int, height: int, devices: int) -> tuple[int, int]:
    """Return columns and rows that the script's terminal has at first, on a screen of this size with *devices* GPUs.

    This size fits together with the script's process and up to one finding. So the first finding does not resize the
    terminal.
    """
    one = _FINDING if width >= SIDE_BY_SIDE else _FINDING_NARROW
    sizes = [
        output_size(
            width,
            arrange(
                width,
                height - AROUND,
                devices_wanted=lambda lines: devices_wanted(devices, width, lines),
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


class DeviceLayout(Enum):
    """How much each device shows."""

    GRAPH = "graph"  # title, bar, legend and graph
    LEGEND = "legend"  # title, bar and legend
    BAR = "bar"  # title and bar, one legend for all
    LINE = "line"  # a line each


def device_layout(devices: int, width: int, height: int) -> tuple[DeviceLayout, int]:
    """Return how much each device shows, and how many stand beside each other: no more than that requires."""
    beside = range(1, max(1, min(devices, (width + GAP) // (_COLUMN_LEAST + GAP))) + 1)
    graphs = [(DeviceLayout.GRAPH, 3 + graph) for graph in (_GRAPH_AMONG_OTHERS, GRAPH_LEAST)]
    for layout, lines in (*graphs, (DeviceLayout.LEGEND, 3)):
        for columns in beside:
            if height >= -(-devices // columns) * lines:
                return layout, columns
    return (DeviceLayout.BAR if height >= devices * 2 + (devices > 1) else DeviceLayout.LINE), 1


def with_graphs(devices: int, width: int, height: int) -> int:
    """Return how many of the *devices* have a graph if the others are a line each."""
    for graphs in range(devices, 0, -1):
        if device_layout(graphs, width, height - (devices - graphs))[0] is DeviceLayout.GRAPH:
            return graphs
    return 0


def devices_wanted(devices: int, width: int, available: int) -> int:
    """Return how many of the *available* lines the *devices* can use: all of them, if there is room for a graph."""
    if not devices:
        return min(_WITHOUT_GPU, available)
    if with_graphs(devices, width, available):
        return available
    layout, columns = device_layout(devices, width, available)
    each, once = {DeviceLayout.LEGEND: (3, 0), DeviceLayout.BAR: (2, 1)}.get(layout, (1, 2))
    return min(each * -(-devices // columns) + once, available)
