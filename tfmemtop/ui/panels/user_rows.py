"""The lines of the processes' sums by user. Pure."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.segment import Segment

from tfmemtop.safe import safe
from tfmemtop.state.users import Sum, UserRow
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, LAYER, Glyphs
from tfmemtop.ui.draw.text import exactly
from tfmemtop.units import UNKNOWN, format_short

_USER = 12  # cells


class _Column(NamedTuple):
    name: str
    width: int
    text: Callable[[UserRow], str]
    rank: int  # with little room, the column of the highest rank is left out first


_COLUMNS = (
    _Column("PROCESSES", 9, lambda user: _processes(user), 1),
    _Column("GPUS", 7, lambda user: _gpus(user.gpus), 3),
    _Column("GPU-MEM", 8, lambda user: _figure(user.gpu_memory, _bytes), 0),
    _Column("%SM", 6, lambda user: _figure(user.sm, _whole), 4),
    _Column("%CPU", 7, lambda user: _figure(user.cpu, _whole), 5),
    _Column("HOST-MEM", 8, lambda user: _figure(user.rss, _bytes), 2),
    _Column("TF-USE", 8, lambda user: _figure(user.in_use, _bytes), 1),
)
_BAR_LEAST = 8


def user_lines(found: Sequence[UserRow], width: int, height: int, top: int, chosen: int, glyphs: Glyphs) -> list[Line]:
    """Return a heading and the rows from *top* on, in *height* lines; the row *chosen* is highlighted.

    Each row has a bar, if there is room: the user's share of the GPU memory that all users hold.
    """
    columns = list(_COLUMNS)
    while len(columns) > 1 and _taken(columns) > width:
        columns.remove(max(columns, key=lambda column: column.rank))
    room = width - _taken(columns) - 2
    head = exactly(" USER", _USER + 2) + "".join(f"{column.name:>{column.width}} " for column in columns)
    lines: list[Line] = [[Segment(exactly(head, width), BOLD)]]
    whole = sum(user.gpu_memory.total or 0 for user in found)
    for index, user in enumerate(found[top : top + max(0, height - 1)], top):
        name = exactly(fit(safe(user.user) or UNKNOWN, _USER, glyphs), _USER)
        figures = "".join(f"{column.text(user):>{column.width}} " for column in columns)
        line = [Segment(f" {name} "), Segment(figures)]
        if room >= _BAR_LEAST and whole:
            cells = round((user.gpu_memory.total or 0) / whole * room)
            line.append(Segment(" " + glyphs.fill["others"] * cells, LAYER["others"]))
        if index == chosen:
            text = "".join(segment.text for segment in line)
            line = [Segment(exactly(text, width), CHOSEN)]
        lines.append(line)
    return lines


def _taken(columns: Sequence[_Column]) -> int:
    return 2 + _USER + sum(column.width + 1 for column in columns)


def _processes(user: UserRow) -> str:
    """Return how many processes are running; if there are none, how many have ended."""
    return str(user.processes) if user.processes else f"{user.ended} ended"


def _figure(found: Sum, text: Callable[[float], str]) -> str:
    """Return a sum as text. Before it, ``>`` means that some parts are unknown, so that it is at least so much."""
    return UNKNOWN if found.total is None else (">" if found.partial else "") + text(found.total)


def _bytes(value: float) -> str:
    return format_short(int(value))


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _gpus(indices: set[int]) -> str:
    """Return the GPUs as ``0,1`` or ``0-7``; if that is longer than 7 cells, how many they are."""
    listed = sorted(indices)
    if not listed:
        return UNKNOWN
    if len(listed) > 2 and listed[-1] - listed[0] == len(listed) - 1:
        return f"{listed[0]}-{listed[-1]}"
    text = ",".join(map(str, listed))
    return text if len(text) <= 7 else f"{len(listed)}"
