"""H: the runs of this session, side by side."""

from collections.abc import Callable

from rich.segment import Segment

from tfmemtop.state import State
from tfmemtop.state.model import RunState
from tfmemtop.ui.dialog import Dialog
from tfmemtop.ui.lines import Line, fit
from tfmemtop.ui.palette import BOLD, DIM, GOOD, PLAIN, UNICODE, WARNING, Glyphs
from tfmemtop.units import format_bytes, format_duration
from tfmemtop.verdicts.ending import ending


class RunsDialog(Dialog[None]):
    """One row a run: duration, peaks, how it ended; below it the settings."""

    def __init__(self, state: Callable[[], State], *, glyphs: Glyphs = UNICODE) -> None:
        super().__init__("Runs of this session", glyphs=glyphs, width=100)
        self._state = state

    def refresh_state(self, state: State) -> None:
        """Draw anew, as a run goes on."""
        self.redraw()

    def body(self, width: int) -> list[Line]:
        runs = self._state().runs
        if not runs:
            return [[Segment("No script has been started: tfmemtop only watches.", DIM)]]
        heading = f"{'RUN':>3} {'DURATION':>9} {'PEAK IN USE':>12} {'PEAK PROCESS':>13}  HOW IT ENDED"
        lines: list[Line] = [[Segment(heading[:width], BOLD)]]
        for run in runs:
            lines += self._row(run, width)
        return lines

    def _row(self, run: RunState, width: int) -> list[Line]:
        duration = (run.ended if run.ended is not None else self._state().now) - run.started
        figures = (
            f"{run.run:>3} {format_duration(duration):>9} {format_bytes(run.peak_in_use):>12} "
            f"{format_bytes(run.peak_process_total):>13}  "
        )
        word = ending(run) or "running"
        if run.out_of_memory:
            word += f", out of memory ×{run.out_of_memory}"
        style = GOOD if run.going or run.exit_code == 0 else WARNING
        settings = " · ".join(run.settings.words()) or "the script's own settings"
        return [
            [Segment(figures, PLAIN), Segment(fit(word, max(4, width - len(figures)), self.glyphs), style)],
            [Segment("    " + fit(settings, max(4, width - 4), self.glyphs), DIM)],
        ]
