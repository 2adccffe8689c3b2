"""The panels above and below the cluster's table: the server's state, and what is wrong with the chosen row."""

import time

from rich.segment import Segment

from tfmemtop.cluster import text as words
from tfmemtop.cluster.watch import Seen
from tfmemtop.safe import safe
from tfmemtop.ui.draw.lines import Line, Panel, fit, width_of
from tfmemtop.ui.draw.palette import BOLD, DIM, ERROR, PLAIN, TITLE, WARNING, Glyphs
from tfmemtop.ui.draw.text import wrap
from tfmemtop.ui.panels.cluster_table import ClusterTable


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
