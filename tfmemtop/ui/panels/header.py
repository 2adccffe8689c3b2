"""The first line of the screen: the program, its run, its settings, changes for the next run; and a replay's line."""

import time
from collections.abc import Callable, Iterator, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events

from tfmemtop.events import StoppingPhase
from tfmemtop.experiments.session import is_over
from tfmemtop.experiments.session.replay import ReplaySource
from tfmemtop.experiments.session.session import Session
from tfmemtop.placement import Placement, rank_in_short, where
from tfmemtop.reports.settings import changes, in_effect
from tfmemtop.safe import safe
from tfmemtop.state.figures import effective_settings
from tfmemtop.state.model import RunState
from tfmemtop.state.program import title
from tfmemtop.state.steps import pace
from tfmemtop.state.waiting import waiting
from tfmemtop.ui.draw.glyphs import DOT, ENDED, LINE, RUNNING
from tfmemtop.ui.draw.lines import Line, Panel, cut, fit, segments, width_of
from tfmemtop.ui.draw.palette import BOLD, DIM, ERROR, GOOD, KEY, PLAIN, RULE, TITLE, WARNING
from tfmemtop.ui.waiting import in_short
from tfmemtop.units import counted, format_duration, format_rate

EVERY_PROCESS = "every process on the GPUs"
"""The text in place of a run, where none has been started."""

_PROGRAM_CELLS = 30
"""Cells kept for the program's name and arguments, as long as other parts can be left out."""
_PROGRAM_LEAST = 4


class Header(Panel):
    """The first line of the screen."""

    DEFAULT_CSS = "Header { height: 1; }"

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def build(self, width: int, height: int) -> list[Line]:
        current = self.state.run
        brand: Line = [Segment(" tfmemtop ", TITLE)]
        marks: Line = [Segment(f" {mark} ", WARNING + Style(reverse=True)) for mark in self._marks()]
        clock: Line = [Segment(f" {self._clock()} ", DIM)]
        if current is None:
            return [self._spread([*brand, *marks, Segment(f"  {EVERY_PROCESS}", PLAIN)], clock, width)]
        name = safe(title(current))
        run, rate, rank = self._run(current), self._pace(current), self._rank(where)
        settings = self._line(in_effect(effective_settings(current)), PLAIN)
        upcoming = self._line(self._changes(), KEY, "  next: ")
        # Parts that do not fit are left out, the least important first. The program's text is cut off last.
        wanted = min(cell_len(name), _PROGRAM_CELLS)

        def room() -> int:
            parts = brand, marks, rank, run, rate, settings, upcoming, clock
            return width - 3 - sum(map(width_of, parts)) - (1 if clock else 0)

        if wanted > room():
            rank = self._rank(rank_in_short)
        for part in (brand, clock, rate, settings):
            if wanted > room():
                part.clear()
        if wanted > room():
            run = self._run(current, short=True)
        program: Line = [Segment(f" {fit(name, max(_PROGRAM_LEAST, room()))}  ", BOLD)]
        return [self._spread([*brand, *marks, *rank, *program, *run, *rate, *settings, *upcoming], clock, width)]

    def _marks(self) -> Iterator[str]:
        """Return the words for what is special about this screen, such as that it is a replay."""
        session, search = self.session, self.session.fitting.search
        if session.replay or session.readonly:
            yield "REPLAY" if session.replay else "READ-ONLY"
        if session.outside:
            yield "FROM OUTSIDE"
        if search and search.going:
            yield f"FIT try {search.number} of {search.plan.tries}"
        if session.frozen:
            yield "FROZEN: Z resumes"
        if session.engine_gone:
            yield "SESSION OVER" if is_over(self.state) else "ENGINE GONE"

    def _rank(self, say: Callable[[Placement], str]) -> Line:
        """Return which of several ranks this session is; *say* puts that into words. Empty if there is only one."""
        place = self.state.session.placement if self.state.session else None
        return [Segment(f" {safe(say(place))} ", KEY)] if place and place.among_others else []

    def _changes(self) -> list[str]:
        """Return how the next run would differ from the newest."""
        run, upcoming = self.state.run, self.session.next
        return changes(upcoming.argv, upcoming.settings, run.argv, run.settings) if run and upcoming else []

    def _run(self, run: RunState, short: bool = False) -> Line:
        glyph, word, style = RUNNING, "running", GOOD
        phase = run.stopping.phase if run.stopping else None
        if phase is StoppingPhase.RELEASING:
            word, style = "waiting for its memory", WARNING
        elif not run.going:
            glyph, word, style = ENDED, "ended", ERROR if run.end and run.end.shell_code else DIM
        elif phase in (StoppingPhase.TERM, StoppingPhase.KILL):
            word, style = "stopping", WARNING
        line = [Segment(f"run {run.run} ", PLAIN), Segment(glyph if short else f"{glyph} {word}", style)]
        if word == "stopping" and run.stopping and run.stopping.deadline is not None:
            line.append(Segment(f", killed in {max(0.0, run.stopping.deadline - self.state.now):.0f} s", WARNING))
        return [*line, Segment(f" {format_duration(self._last(run) - run.started)}", PLAIN)]

    def _last(self, run: RunState) -> float:
        return self.state.now if run.ended is None else run.ended

    def _pace(self, run: RunState) -> Line:
        """Return the steps a second; before there are any, what is being waited for."""
        found = pace(run.steps, self._last(run)) if run.steps else None
        if found is None:
            waits = waiting(self.state)
            text = in_short(waits) if waits else ""
            return [Segment(f" {DOT} {text}", DIM)] if text else []
        rate = found.recent if run.going else found.whole
        return [Segment(f" {DOT} {format_rate(rate)} {found.unit}/s", PLAIN)] if rate else []

    def _line(self, parts: Sequence[str], style: Style, before: str = "  ") -> Line:
        text = safe(f" {DOT} ".join(parts))
        return [Segment(before), Segment(text, style)] if text else []

    def _clock(self) -> str:
        session = self.state.session
        if session is None:
            return ""
        return time.strftime("%H:%M:%S", time.localtime(session.started + self.state.now))

    def _spread(self, left: Line, right: Line, width: int) -> Line:
        gap = width - width_of(left) - width_of(right)
        return [*left, Segment(" " * gap), *right] if gap >= 0 else cut(left, width)


_SHORTEST_TRACK = 10
_KEYS = ((", .", "step"), ("Left Right", "5 s"), ("Home End", "seek"), ("< >", "speed"))


class ReplayBar(Panel):
    """The bar of a :class:`ReplaySource`. A click on its track seeks."""

    DEFAULT_CSS = "ReplayBar { height: 1; }"

    def __init__(self, source: ReplaySource) -> None:
        super().__init__()
        self.source = source
        self._track = range(0)  # cells of the track

    def build(self, width: int, height: int) -> list[Line]:
        source = self.source
        left = segments(
            (
                (f" {'▮▮' if source.paused else '▶'} {source.speed:g}× ", BOLD),
                (f"{format_duration(source.position_s)} ", PLAIN),
            )
        )
        right = segments([(f" {format_duration(source.length_s)}", PLAIN)])
        if source.seeking and source.position_s > 0:
            right += segments([(f"  seeking {100 * source.folded_s / source.position_s:.0f}%", WARNING)])
        elif source.at_end:
            right += segments([("  at the end", DIM)])
        if source.damaged:
            right += segments([(f"  {counted(source.damaged, 'damaged line')} left out", WARNING)])
        play = "play again" if source.at_end else "play" if source.paused else "pause"
        for key, word in (("Space", play), *_KEYS):
            more = segments([("  ", PLAIN), (key, KEY), (f" {word}", PLAIN)])
            if width_of(left) + _SHORTEST_TRACK + width_of(right) + width_of(more) <= width:
                right += more
        start = width_of(left)
        self._track = range(start, max(start, width - width_of(right) - 1))
        share = min(1.0, source.position_s / source.length_s) if source.length_s else 1.0
        return [[*left, *self._draw_track(len(self._track), share), *right]]

    def _draw_track(self, width: int, share: float) -> Line:
        if width < 1:
            return []
        at = round(share * (width - 1))
        return segments([("━" * at, GOOD), ("●", BOLD), (LINE * (width - 1 - at), RULE)])

    def on_click(self, event: events.Click) -> None:
        if event.x in self._track and len(self._track) > 1:
            self.source.seek(self.source.length_s * (event.x - self._track.start) / (len(self._track) - 1))
