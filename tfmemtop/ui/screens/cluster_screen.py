"""The cluster's screen: the server, the table, what is wrong with the chosen row, the keys."""

import time

from rich.segment import Segment
from textual import on
from textual.app import ComposeResult
from textual.screen import Screen

from tfmemtop.cluster import text as words
from tfmemtop.cluster.watch import Seen
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.ui.cluster_keys import KEYS
from tfmemtop.ui.draw.lines import Line, Panel, fit, width_of
from tfmemtop.ui.draw.palette import BOLD, DIM, ERROR, PLAIN, TITLE, WARNING, Glyphs
from tfmemtop.ui.draw.text import wrap
from tfmemtop.ui.panels.cluster_table import ClusterTable
from tfmemtop.ui.panels.key_bar import HintLine, Hints
from tfmemtop.ui.screens.drawn import Changed, Drawn

_CHOSEN, _CHOSEN_SHORT = 4, 2
"""Lines for what is wrong with the chosen row, title included: on a screen of ``_ROOMY`` lines, and on a lower one."""
_ROOMY = 18


class ClusterHeader(Panel):
    """Two lines above the table: the server, the job and the time; then the counts, or trouble with server or clock."""

    DEFAULT_CSS = "ClusterHeader { height: 2; }"

    def __init__(self, url: str, job: str | None, *, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs)
        self.seen = Seen()
        self._url, self._job = url, job

    def look(self, seen: Seen) -> None:
        """Draw *seen*, the newest answer of the server."""
        self.seen = seen
        self.redraw()

    def build(self, width: int, height: int) -> list[Line]:
        where = safe(self._url.partition("://")[2])
        job = f" {self.glyphs.dot} job {safe(self._job)}" if self._job is not None else ""
        at = self.seen.overview.at
        clock = f" {time.strftime('%H:%M:%S', time.localtime(at))} " if at else ""
        first: Line = [Segment(" tfmemtop cluster ", TITLE), Segment(fit(f" {where}{job}", max(0, width - 30)), BOLD)]
        blank = " " * max(0, width - width_of(first) - len(clock))
        return [[*first, Segment(blank), Segment(clock, DIM)], self._second(width)]

    def _second(self, width: int) -> Line:
        seen = self.seen
        if seen.trouble is not None:
            old_s = time.time() - seen.answered if seen.answered else None
            told = words.since(words.no_answer(self._url, seen.trouble), time.time() - seen.since, old_s)
            return [Segment(fit(f" {told}", width, self.glyphs), ERROR)]
        if not seen.asked:
            return [Segment(f" {words.ASKING}", DIM)]
        found = seen.overview
        counted = words.counted(len(found.rows), found.hosts, found.jobs, found.wrong)
        if seen.apart_s is None:
            return [Segment(fit(f" {counted}", width, self.glyphs), PLAIN)]
        apart = words.clocks_apart(seen.apart_s)
        # With little room, the difference of the clocks is shown instead of the counts, because it is rare.
        line = [Segment(f" {counted} {self.glyphs.dot} ", PLAIN), Segment(apart, WARNING)]
        return line if width_of(line) <= width else [Segment(fit(f" {apart}", width, self.glyphs), WARNING)]


class ChosenPanel(Panel):
    """What is wrong with the chosen row, at length."""

    DEFAULT_CSS = "ChosenPanel { height: 4; }"

    def __init__(self, table: ClusterTable, *, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs)
        self._table = table

    def build(self, width: int, height: int) -> list[Line]:
        chosen = self._table.selected
        if chosen is None:
            return []
        lines = [self.title_line(width, words.whose(chosen.row), chosen.row.model)]
        told = [words.at_length(chosen.row, wrong) for wrong in chosen.wrongs] or [words.NOTHING_WRONG]
        rows = [line for text in told for line in wrap(text, width - 4, "  ")]
        return lines + [[Segment(f"  {line}", PLAIN if chosen.wrongs else DIM)] for line in rows]


class ClusterScreen(Drawn, Screen[None]):
    """The screen of a cluster. It draws what the app has read last."""

    def __init__(self, url: str, job: str | None, *, glyphs: Glyphs) -> None:
        super().__init__()
        self.header = ClusterHeader(url, job, glyphs=glyphs)
        self.table = ClusterTable(job, glyphs=glyphs)
        self.chosen = ChosenPanel(self.table, glyphs=glyphs)
        self.keys = HintLine(self.hints, glyphs=glyphs)

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.table
        yield self.chosen
        yield self.keys

    def on_mount(self) -> None:
        self.table.focus()
        self.call_after_refresh(self.look, self.table.seen)

    def look(self, seen: Seen) -> None:
        """Draw *seen*."""
        self.chosen.styles.height = _CHOSEN if self.app.size.height >= _ROOMY else _CHOSEN_SHORT
        for part in (self.header, self.table):
            part.look(seen)
        self.chosen.redraw()
        self.keys.redraw()

    def refresh_state(self, state: State) -> None:
        self.look(self.table.seen)

    def hints(self) -> Hints:
        """The keys of the last line."""
        return self.table.mode or [(key.shown, key.footer) for key in KEYS if key.footer]

    @on(ClusterTable.Moved)
    def _moved(self) -> None:
        self.chosen.redraw()

    @on(Changed)
    def _changed(self) -> None:
        self.keys.redraw()
        self.table.redraw()
