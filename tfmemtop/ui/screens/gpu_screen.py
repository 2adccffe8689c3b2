"""One GPU of the cluster, drawn from Prometheus's history with the same panel as on a session's screen."""

import asyncio
import time
from functools import partial
from typing import ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tfmemtop.cluster.client import Client, NoAnswer, in_thread
from tfmemtop.cluster.judgement import remark
from tfmemtop.cluster.one_gpu import OneGpu
from tfmemtop.cluster.rows import ClusterRow, Kind
from tfmemtop.cluster.watch import Seen, no_answer
from tfmemtop.findings.finding import Severity, grouped, say_group
from tfmemtop.findings.leaks import Leak
from tfmemtop.findings.rules import findings_of_figures
from tfmemtop.state import State, apply
from tfmemtop.state.views import panels
from tfmemtop.ui.draw.lines import Line, Panel
from tfmemtop.ui.draw.palette import DIM, ERROR, PLAIN, Glyphs
from tfmemtop.ui.draw.window import SPANS
from tfmemtop.ui.panels.cluster_table import ASKED, mark_of
from tfmemtop.ui.panels.device_panel import DevicesPanel
from tfmemtop.ui.panels.key_bar import KeyBar
from tfmemtop.ui.panels.why_panel import MARKS, finding_lines, headline_style
from tfmemtop.ui.screens.cluster_screen import NOTHING_WRONG, ClusterHeader
from tfmemtop.ui.screens.drawn import Drawn
from tfmemtop.units import format_duration

_FIRST_SPAN = next(index for index, (_, said) in enumerate(SPANS) if said == "1 h")
FIRST_S = SPANS[_FIRST_SPAN][0]
"""Seconds of history that are read first. A longer history is read when the user chooses a longer span."""


class FoundPanel(Panel):
    """What is wrong according to the table, and what the rules find in the figures of this GPU."""

    def __init__(self, row: ClusterRow, *, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs)
        self.row = row

    @property
    def said_twice(self) -> set[Kind]:
        """What a finding says more about than the table. The figures of the two differ a little."""
        return {Kind.LEAKING} if any(isinstance(one, Leak) for one in findings_of_figures(self.state)) else set()

    def build(self, width: int, height: int) -> list[Line]:
        found, room = findings_of_figures(self.state), max(10, width - 4)
        wrong, info = ("!", mark_of(self.row, self.glyphs)[1]), MARKS[Severity.INFO]
        told = [
            (info if one.kind >= Kind.GONE else wrong, one.sentence, "", PLAIN)
            for one in self.row.wrongs
            if one.kind not in self.said_twice
        ]
        told += [(info, remark(key), "", PLAIN) for key in self.row.remarks]
        for group in grouped(found):
            severity, said = group.first.severity, say_group(group)
            told.append((MARKS[severity], said.headline, said.figures, headline_style(severity)))
        lines = [self.title_line(width, "Why")]
        for (mark, style), headline, figures, bold in told:
            rows = enumerate(finding_lines(headline, figures, room, bold))
            lines += [[Segment("   " if at else f" {mark} ", style), *line] for at, line in rows]
        return lines if told else [*lines, [Segment(f"   {NOTHING_WRONG}", DIM)]]


class GpuScreen(Drawn, Screen[None]):
    """The screen of one GPU. It reads the history when it is opened, then new figures every *interval_s* seconds."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+c,enter", "close", show=False),
        Binding("left_square_bracket", "span(-1)", show=False),
        Binding("right_square_bracket", "span(1)", show=False),
        Binding("s", "scale", show=False),
        Binding("w", "whole", show=False),
    ]

    def __init__(
        self, client: Client, row: ClusterRow, seen: Seen, interval_s: float, *, glyphs: Glyphs, color: bool
    ) -> None:
        super().__init__()
        self._client, self._row, self._seen, self._interval_s = client, row, seen, interval_s
        self._wake = asyncio.Event()
        self._trouble: NoAnswer | None = None
        self.gpu = OneGpu(client, row, FIRST_S)
        self._wanted: OneGpu | None = self.gpu  # the one whose history is to be read
        self.header = ClusterHeader(row.whose, glyphs=glyphs)
        self.device = DevicesPanel(glyphs=glyphs, color=color, span=_FIRST_SPAN)
        self.found = FoundPanel(row, glyphs=glyphs)
        self.keys = KeyBar(self.hints, glyphs=glyphs)

    @property
    def reading(self) -> bool:
        """Whether a history is still to be read."""
        return self._wanted is not None

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.device
        yield self.found
        yield self.keys

    def on_mount(self) -> None:
        self.run_worker(self._follow(), name="gpu", exit_on_error=True)

    def hints(self) -> list[tuple[str, str]]:
        """Return the keys of the last line."""
        return [("Esc", "back"), ("[", "shorter"), ("]", "longer"), ("w", "whole"), ("s", "scale"), ("F1", "help")]

    async def _follow(self) -> None:
        while True:
            self._wake.clear()
            wanted = self._wanted
            try:
                if wanted is None:
                    for event in await asyncio.wrap_future(in_thread(self.gpu.follow)):
                        apply(self.gpu.state, event)
                else:  # until it has been read, what was shown before stays
                    await asyncio.wrap_future(in_thread(partial(wanted.open, self._seen.at + 1)))
                    self.gpu = wanted
                    if self._wanted is wanted:
                        self._wanted = None
                self._trouble = None
            except NoAnswer as trouble:
                self._trouble = trouble
            self.refresh_state(self.gpu.state)
            if self._wanted is None or self._trouble is not None:
                try:
                    await asyncio.wait_for(self._wake.wait(), self._interval_s)
                except asyncio.TimeoutError:
                    pass

    def hurry(self) -> None:
        """Read the new figures now."""
        self._wake.set()

    def look(self, seen: Seen) -> None:
        """Use *seen*, the newest answer, for what is wrong with this GPU."""
        self._seen = seen
        self._row = next((row for row in seen.rows if row.key == self._row.key), self._row)
        self.refresh_state(self.gpu.state)

    def refresh_state(self, state: State) -> None:
        state = self.gpu.state
        if state.session is not None:
            state.now = max(state.now, time.time() + self.gpu.ahead_s - state.session.started)
        width, height = self.app.size
        self.found.row = self._row
        self.device.display = bool(panels(state))
        for part in (self.device, self.found, self.keys):
            part.show(state)
        if self._trouble is not None:
            self.header.tell(no_answer(self._client.address.url, self._trouble), ERROR)
        elif self.reading:
            self.header.tell(ASKED, DIM)
        elif not panels(state):
            self.header.tell(f"Prometheus has no figures of it in the last {format_duration(self.gpu.span_s)}.", DIM)
        else:
            twice = self.found.said_twice
            told = ", ".join("leak" if one.kind in twice else one.short for one in self._row.wrongs)
            self.header.tell(told or NOTHING_WRONG, mark_of(self._row, self.found.glyphs)[1])
        self.found.styles.height = min(len(self.found.build(width, 0)), max(3, (height - 3) // 2))

    def action_close(self) -> None:
        self.dismiss(None)

    def action_span(self, step: int) -> None:
        """Show a shorter or a longer span. Its history is read if it has not been, or only in less detail."""
        self.device.cycle_span(step)
        span_s = max(FIRST_S, SPANS[self.device.span][0])
        if span_s > self.gpu.span_s or span_s == FIRST_S < self.gpu.span_s:
            self._wanted = OneGpu(self._client, self._row, span_s)
            self.hurry()

    def action_whole(self) -> None:
        self.device.toggle_whole()

    def action_scale(self) -> None:
        self.device.next_scale()
