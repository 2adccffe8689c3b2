"""The time that a graph shows: the newest minutes, or a run from its start to its end; and a moment chosen there.

Time in which nothing ran is folded: of a pause between two runs a graph shows only a few columns.
"""

from bisect import bisect_left

import msgspec

from tfmemtop.state import State
from tfmemtop.state.comparable import span as round_span
from tfmemtop.state.history import History
from tfmemtop.state.views import DevicePanel, LayerKind, Whole, seconds_a_step
from tfmemtop.ui.draw.chunk_map import clock
from tfmemtop.units import duration, format_duration, format_short

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
Pauses = tuple[tuple[float, float], ...]
"""Times between runs, in session seconds, each from its begin to its end; the oldest first."""
FIRST = 1
"""The index of the time that a graph spans until the user chooses another."""
FOLD = "//"
FOLD_CELLS = len(FOLD) + 1
"""What stands on the axis where a pause is folded, and the cells that are left of the pause."""


def span_text(seconds: float) -> str:
    """Return the length of time that a graph shows: ``45 s``, ``20 min``, ``01:30:00``."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds % 60 == 0 and seconds < 3600 else format_duration(seconds)


class Window(msgspec.Struct, frozen=True):
    """``span_s`` seconds up to ``until``, or, with ``start``, from there on; then the graph's columns do not move.

    Times are in session seconds. ``left`` and ``right`` are the labels at the ends of the axis. ``closed`` means that
    nothing is added after ``until``. ``pauses`` are folded.
    """

    span_s: float
    until: float
    left: str
    right: str
    start: float | None = None
    closed: bool = False
    pauses: Pauses = ()

    def columns(self, cells: int) -> list[range]:
        """Return the numbers of the columns that *cells* cells show, oldest first, without those that are folded.

        Columns are numbered from the session's start on.
        """
        column_s = self.column_s(cells)
        stop = History.newest_column(column_s, self.until) + 1
        folds = [fold for fold, _ in self.folds(cells)]
        first = stop - cells - sum(map(len, folds))
        if self.start is not None:
            first = History.newest_column(column_s, self.start)
        pieces: list[range] = []
        begins = [*(fold.stop for fold in reversed(folds)), first]
        for begin, end in zip(begins, [stop, *(fold.start for fold in reversed(folds))], strict=True):
            pieces.insert(0, range(max(begin, end - cells), end))
            cells -= len(pieces[0])
        return [piece for piece in pieces if piece]

    def times(self, cells: int) -> list[float]:
        """Return the middle of each column, in session seconds."""
        return [(number + 0.5) * self.column_s(cells) for piece in self.columns(cells) for number in piece]

    def edges(self, cells: int) -> list[float]:
        """Return where each half of each column begins, and the end of the newest one, in session seconds."""
        half_s = self.column_s(cells) / 2
        begins = [half * half_s for piece in self.columns(cells) for half in range(2 * piece.start, 2 * piece.stop)]
        return [*(begin for begin in begins if begin < self.until), self.until]

    def folds(self, cells: int) -> list[tuple[range, float]]:
        """Return the numbers of the columns that a graph of *cells* cells leaves out, and the seconds of the pause."""
        column_s = self.column_s(cells)
        folds = [
            (range(int(begin / column_s) + 1 + FOLD_CELLS, int(end / column_s)), end - begin)
            for begin, end in self.pauses
        ]
        return [(fold, pause_s) for fold, pause_s in folds if fold]

    def column_s(self, cells: int) -> float:
        """Return the seconds that a column takes.

        With a fixed start, the span is shared among one column less: both of its ends may lie within a column.
        """
        return self.span_s / (cells if self.start is None else max(1, cells - 1))


def newest(span: int, now: float, pauses: Pauses = ()) -> Window:
    """Return the window of the newest time, as long as the index *span* of :data:`SPANS` means."""
    span_s, said = SPANS[span]
    return Window(span_s, now, f"-{said}", "now", pauses=pauses)


def young(now: float, pauses: Pauses = ()) -> Window:
    """Return the window of a session from its start on.

    A young session's graph fills from the left and stretches. Otherwise it would be almost empty for long.
    """
    span_s = round_span(now - sum(end - begin for begin, end in pauses))
    return Window(span_s, now, "", span_text(span_s), 0.0, pauses=pauses)


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


class ChosenMoment:
    """A moment on graphs whose columns have their middles at ``times``; ``t`` is ``None`` for now.

    Times are in session seconds. ``times`` is empty while there is no graph.
    """

    def __init__(self) -> None:
        self.t: float | None = None
        self.times: list[float] = []

    def move(self, count: int) -> None:
        """Choose the moment *count* columns later; after the newest column it is now."""
        self.choose(self._at() + count)

    def choose(self, column: int) -> None:
        """Choose the column with the index *column*; where there is none, it is now."""
        newest, chosen = len(self.times) - 1, max(column, bisect_left(self.times, 0.0))
        self.t = self.times[chosen] if chosen < newest else None

    @property
    def column(self) -> tuple[float, float]:
        """When the column of the moment begins and ends."""
        middle = self.times[self._at()]
        return middle - self._half_s, middle + self._half_s

    def _at(self) -> int:
        newest = len(self.times) - 1
        return newest if self.t is None else min(newest, bisect_left(self.times, self.t - self._half_s))

    @property
    def _half_s(self) -> float:
        return (self.times[-1] - self.times[-2]) / 2 if len(self.times) > 1 else 0.0


def moment_facts(state: State, panel: DevicePanel, t: float, column: tuple[float, float]) -> list[str]:
    """Return the figures of *panel*, which are of session second *t*: ``run 1 at 00:22``, ``in use 373.7M``, …

    *column* is the begin and end of the column that shows them.
    """
    run = next((run for run in reversed(state.runs) if run.started <= t <= (run.ended or t)), None)
    sizes = {layer.kind: layer.size for layer in panel.layers}
    in_use, step_s = sizes.get(LayerKind.IN_USE), seconds_a_step(state, column)[0]
    found = [f"run {run.run} at {clock(t - run.started)}" if run else f"no run at {clock(t)}"]
    if in_use is not None:
        found += [f"in use {format_short(in_use)}", f"pool {format_short(in_use + sizes[LayerKind.CACHED])}"]
    if panel.limit is not None:
        found.append(f"limit {format_short(panel.limit)}")
    if step_s is not None:
        found.append(f"{duration(round(step_s * 1e6))} a step")
    return found
