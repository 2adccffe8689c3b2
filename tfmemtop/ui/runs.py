"""H: the runs of this session, side by side, and what the newest does otherwise than the one before."""

from collections.abc import Callable

from rich.segment import Segment

from tfmemtop.compare import RunFigures, figures, sentences
from tfmemtop.state import State
from tfmemtop.ui.dialog import Dialog
from tfmemtop.ui.lines import Line, fit
from tfmemtop.ui.palette import BOLD, DIM, GOOD, PLAIN, UNICODE, WARNING, Glyphs
from tfmemtop.ui.text import harmless, wrap
from tfmemtop.units import UNKNOWN, format_bytes, format_duration, format_rate


class RunsDialog(Dialog[None]):
    """One row a run: duration, peaks, how it ended; below it the settings and how it got on."""

    def __init__(self, state: Callable[[], State], *, glyphs: Glyphs = UNICODE) -> None:
        super().__init__("Runs of this session", glyphs=glyphs, width=116)
        self._state = state

    def refresh_state(self, state: State) -> None:
        """Draw anew, as a run goes on."""
        self.redraw()

    def body(self, width: int) -> list[Line]:
        runs = self._state().runs
        if not runs:
            return [[Segment("No script has been started: tfmemtop only watches.", DIM)]]
        heading = (
            f"{'RUN':>3} {'DURATION':>9} {'PEAK IN USE':>12} {'PEAK POOL':>12} {'PEAK PROCESS':>13} {'FRAGM':>5}"
            "  HOW IT ENDED"
        )
        lines: list[Line] = [[Segment(heading[:width], BOLD)]]
        found = [figures(run, self._state().now) for run in runs]
        for run in found:
            lines += self._row(run, width)
        if len(found) > 1:
            lines += [[], [Segment(f"{found[-1].name} against {found[-2].name}", BOLD)]]
            told = [part for text in sentences(found[-2], found[-1]) for part in wrap(harmless(text), max(10, width))]
            lines += [[Segment(part)] for part in told]
        return lines

    def _row(self, run: RunFigures, width: int) -> list[Line]:
        fragmentation = UNKNOWN if run.fragmentation is None else f"{run.fragmentation:.0%}"
        figures = (
            f"{run.run:>3} {format_duration(run.duration_s):>9} {format_bytes(run.peak_in_use):>12} "
            f"{format_bytes(run.peak_pool):>12} {format_bytes(run.peak_process_total):>13} {fragmentation:>5}  "
        )
        word = run.end
        if run.out_of_memory:
            word += f", out of memory ×{run.out_of_memory}"
        style = GOOD if run.good else WARNING
        words = run.settings or ["the script's own settings"]
        if run.first_step_s is not None:
            words = [*words, f"first step after {format_duration(run.first_step_s)}"]
        if run.steps is not None:
            rate = "" if run.steps_per_s is None else f", {format_rate(run.steps_per_s)} a second"
            words = [*words, f"{run.steps} {run.unit}{rate}"]
        settings = " · ".join(words)
        return [
            [Segment(figures, PLAIN), Segment(fit(word, max(4, width - len(figures)), self.glyphs), style)],
            [Segment("    " + fit(settings, max(4, width - 4), self.glyphs), DIM)],
        ]
