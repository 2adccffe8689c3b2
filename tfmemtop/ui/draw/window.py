"""What time a graph shows: the newest minutes, or a run from its start to its end."""

from dataclasses import dataclass

from tfmemtop.state.history import History
from tfmemtop.state.overlay import span as round_span
from tfmemtop.state.views import Whole
from tfmemtop.words import graphs as words

SPANS = (
    (60.0, "1 min"),
    (300.0, "5 min"),
    (900.0, "15 min"),
    (3600.0, "1 h"),
    (21_600.0, "6 h"),
    (86_400.0, "24 h"),
    (259_200.0, "3 d"),
)
"""What a graph can span: seconds, and how they are said."""
FIRST = 1
"""The index of what a graph spans if nobody chooses."""


@dataclass(frozen=True, slots=True)
class Window:
    """*span_s* seconds up to ``until``, or from ``start`` on: then columns stay where they are.

    Times are in session seconds. ``left`` and ``right`` are what the ends of its axis say. ``closed`` if nothing
    comes after ``until``.
    """

    span_s: float
    until: float
    left: str
    right: str
    start: float | None = None
    closed: bool = False

    def first(self, cells: int) -> int:
        """Number of the leftmost of *cells* columns; they are numbered from the session's start on."""
        column_s = self.column_s(cells)
        if self.start is None:
            return History.newest_column(column_s, self.until) + 1 - cells
        return History.newest_column(column_s, self.start)

    def column_s(self, cells: int) -> float:
        """Seconds of a column: of one that has a fixed start, a column less, as both ends may lie within one."""
        return self.span_s / (cells if self.start is None else max(1, cells - 1))


def newest(span: int, now: float) -> Window:
    """The newest of the time that the index *span* of :data:`SPANS` stands for."""
    span_s, said = SPANS[span]
    return Window(span_s, now, f"-{said}", words.NOW)


def young(now: float) -> Window:
    """A session from its start on: its graph is filled from the left and stretches, instead of being empty for long."""
    span_s = round_span(now)
    return Window(span_s, now, "", words.span(span_s), 0.0)


def whole(run: Whole, now: float) -> Window:
    """*run* from its start to its end, or, while it goes on, to a round number of seconds after its start."""
    if run.ended is None:
        span_s = round_span(now - run.started)
        left = words.WHOLE_RUN if run.run is not None else words.WHOLE_SESSION
        return Window(span_s, now, left, words.span(span_s), run.started)
    lasted_s = run.ended - run.started
    return Window(max(1.0, lasted_s), run.ended, "", words.ended_after(lasted_s), run.started, closed=True)
