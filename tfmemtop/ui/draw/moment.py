"""The moment that the user has chosen on the graphs, and its figures in words."""

from bisect import bisect_left

from tfmemtop.state import State
from tfmemtop.state.views import DevicePanel, LayerKind, seconds_a_step
from tfmemtop.ui.draw.chunk_map import clock
from tfmemtop.units import duration, format_short


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
        """Choose the column with the index *column*."""
        began = bisect_left(self.times, 0.0)
        self.t = None if column >= len(self.times) - 1 else self.times[max(began, column)]

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


def facts(state: State, panel: DevicePanel, t: float, column: tuple[float, float]) -> list[str]:
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
