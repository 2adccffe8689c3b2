"""The first line: what runs, how it stands, its settings, and those of the next run."""

import time

from rich.segment import Segment
from rich.style import Style

from tfmemtop.safe import safe
from tfmemtop.state.views import RunStatus, run_status
from tfmemtop.ui.lines import Line, Panel, fit, width_of
from tfmemtop.ui.palette import BOLD, DIM, ERROR, GOOD, KEY, PLAIN, TITLE, WARNING
from tfmemtop.units import format_duration, format_rate

_PHASES: dict[str, tuple[str, Style]] = {
    "running": ("running", GOOD),
    "stopping": ("stopping", WARNING),
    "releasing": ("waiting for its memory", WARNING),
    "ended": ("ended", DIM),
}


class Header(Panel):
    """One line. *next_words* and *marks* are set by the app; both are short words."""

    DEFAULT_CSS = "Header { height: 1; }"

    next_words: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    """What is special about the screen itself: frozen, a replay, read-only."""

    def build(self, width: int, height: int) -> list[Line]:
        status = run_status(self.state)
        left: Line = [Segment(" tfmemtop ", TITLE)]
        for mark in self.marks:
            left.append(Segment(f" {mark} ", WARNING + Style(reverse=True)))
        right = [Segment(f" {self._clock()} ", DIM)]
        if status is None:
            left.append(Segment("  every process on the GPUs", PLAIN))
            return [self._spread(left, right, width)]
        middle = self._run(status)
        settings = [Segment(self._join(status.settings), PLAIN)] if status.settings else []
        upcoming: Line = []
        if self.next_words:
            upcoming = [Segment("  next: ", DIM), Segment(self._join(self.next_words), KEY)]
        # What does not fit goes, the least telling first: the clock, the settings, the command's end.
        room = width - width_of(left) - width_of(middle) - width_of(upcoming) - 2
        if room - width_of(settings) - width_of(right) < 12:
            right = []
        if settings and room - width_of(settings) < 12:
            settings = []
        room -= width_of(settings) + width_of(right)
        command = Segment(f" {fit(status.command, max(3, room - 3), self.glyphs)}  ", BOLD)
        return [self._spread([*left, command, *middle, Segment("  "), *settings, *upcoming], right, width)]

    def _run(self, status: RunStatus) -> Line:
        word, style = _PHASES[status.phase]
        glyph = self.glyphs.ended if status.phase == "ended" else self.glyphs.running
        if status.phase == "ended" and (run := self.state.run) and (run.exit_code or run.signal is not None):
            style = ERROR
        line = [Segment(f"run {status.run} ", PLAIN), Segment(f"{glyph} {word}", style)]
        if status.kill_in_s is not None:
            line.append(Segment(f", killed in {status.kill_in_s:.0f} s", WARNING))
        line.append(Segment(f" {format_duration(status.elapsed_s)}", PLAIN))
        if status.pace is not None and (rate := status.pace.whole if status.phase == "ended" else status.pace.recent):
            line.append(Segment(f" {self.glyphs.dot} {format_rate(rate)} {status.pace.unit}/s", PLAIN))
        return line

    def _join(self, words: tuple[str, ...]) -> str:
        return safe(f" {self.glyphs.dot} ".join(words))

    def _clock(self) -> str:
        session = self.state.session
        if session is None:
            return ""
        return time.strftime("%H:%M:%S", time.localtime(session.started + self.state.now))

    @staticmethod
    def _spread(left: Line, right: Line, width: int) -> Line:
        gap = width - width_of(left) - width_of(right)
        return [*left, Segment(" " * gap), *right] if gap >= 0 else left
