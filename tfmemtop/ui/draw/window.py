"""The time that a graph shows: the newest minutes, or a run from its start to its end."""

import msgspec

from tfmemtop.state.history import History
from tfmemtop.state.overlay import span as round_span
from tfmemtop.state.views import Whole
from tfmemtop.units import format_duration

SPANS = (
    (60.0, "1 min"),
    (300.0, "5 min"),
    (900.0, "15 min"),
    (3600.0, "1 h"),
    (21_600.0, "6 h"),
    (86_400.0, "24 h"),
    (259_200.0, "3 d"),
)
"""The times that a graph can span: seconds, and the text for them."""
FIRST = 1
"""The index of the time that a graph spans until the user chooses another."""


def span_text(seconds: float) -> str:
    """Return the length of time that a graph shows: ``45 s``, ``20 min``, ``01:30:00``."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds % 60 == 0 and seconds < 3600 else format_duration(seconds)


class Window(msgspec.Struct, frozen=True):
    """``span_s`` seconds up to ``until``, or, with ``start``, from there on; then the graph's columns do not move.

    Times are in session seconds. ``left`` and ``right`` are the labels at the ends of the axis. ``closed`` means that
    nothing is added after ``until``.
    """

    span_s: float
    until: float
    left: str
    right: str
    start: float | None = None
    closed: bool = False

    def first(self, cells: int) -> int:
        """Return the number of the leftmost of *cells* columns, which are numbered from the session's start on."""
        column_s = self.column_s(cells)
        if self.start is None:
            return History.newest_column(column_s, self.until) + 1 - cells
        return History.newest_column(column_s, self.start)

    def column_s(self, cells: int) -> float:
        """Return the seconds that a column takes.

        With a fixed start, the span is shared among one column less: both of its ends may lie within a column.
        """
        return self.span_s / (cells if self.start is None else max(1, cells - 1))


def newest(span: int, now: float) -> Window:
    """Return the window of the newest time, as long as the index *span* of :data:`SPANS` means."""
    span_s, said = SPANS[span]
    return Window(span_s, now, f"-{said}", "now")


def young(now: float) -> Window:
    """Return the window of a session from its start on.

    A young session's graph fills from the left and stretches. Otherwise it would be almost empty for long.
    """
    span_s = round_span(now)
    return Window(span_s, now, "", span_text(span_s), 0.0)


def whole(run: Whole, now: float) -> Window:
    """Return the window of *run* from its start to its end; while it goes on, to a round number of seconds."""
    if run.ended is None:
        span_s = round_span(now - run.started)
        left = "whole run" if run.run is not None else "since the start"
        return Window(span_s, now, left, span_text(span_s), run.started)
    lasted_s = run.ended - run.started
    return Window(
        max(1.0, lasted_s), run.ended, "", f"ended after {format_duration(lasted_s)}", run.started, closed=True
    )
