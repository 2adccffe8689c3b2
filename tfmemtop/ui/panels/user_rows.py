"""The lines of the processes' sums by user. Pure."""

from collections.abc import Callable, Sequence

from rich.segment import Segment

from tfmemtop.safe import safe
from tfmemtop.state.users import Sum, UserRow
from tfmemtop.ui.draw.columns import Column, cells_of, figures, fitting_columns, names
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, LAYER, Glyphs
from tfmemtop.ui.draw.text import exactly
from tfmemtop.units import UNKNOWN, format_short

_USER = 12  # cells


_COLUMNS: tuple[Column[UserRow], ...] = (
    Column("PROCESSES", 9, 8, lambda user: user, lambda user: _processes(user)),
    Column("GPUS", 7, 6, lambda user: user.gpus, lambda gpus: _gpus(gpus)),
    Column("GPU-MEM", 8, 9, lambda user: user.gpu_memory, lambda found: _figure(found, _bytes)),
    Column("%SM", 6, 5, lambda user: user.sm, lambda found: _figure(found, _whole)),
    Column("%CPU", 7, 4, lambda user: user.cpu, lambda found: _figure(found, _whole)),
    Column("HOST-MEM", 8, 7, lambda user: user.rss, lambda found: _figure(found, _bytes)),
    Column("TF-USE", 8, 8, lambda user: user.in_use, lambda found: _figure(found, _bytes)),
)
_BAR_LEAST = 8


def user_lines(found: Sequence[UserRow], width: int, height: int, top: int, chosen: int, glyphs: Glyphs) -> list[Line]:
    """Return a heading and the rows from *top* on, in *height* lines; the row *chosen* is highlighted.

    Each row has a bar, if there is room: the user's share of the GPU memory that all users hold.
    """
    columns = fitting_columns(_COLUMNS, width - _USER - 2)
    room = width - _USER - 4 - sum(map(cells_of, columns))
    head = exactly(" USER", _USER + 2) + names(columns)
    lines: list[Line] = [[Segment(exactly(head, width), BOLD)]]
    whole = sum(user.gpu_memory.total or 0 for user in found)
    for index, user in enumerate(found[top : top + max(0, height - 1)], top):
        name = exactly(fit(safe(user.user) or UNKNOWN, _USER, glyphs), _USER)
        line = [Segment(f" {name} "), Segment(figures(columns, user, glyphs) + " ")]
        if room >= _BAR_LEAST and whole:
            cells = round((user.gpu_memory.total or 0) / whole * room)
            line.append(Segment(" " + glyphs.fill["others"] * cells, LAYER["others"]))
        if index == chosen:
            text = "".join(segment.text for segment in line)
            line = [Segment(exactly(text, width), CHOSEN)]
        lines.append(line)
    return lines


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
