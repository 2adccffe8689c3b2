"""One GPU of the cluster, drawn from Prometheus's history with the same panel as on a session's screen."""

import asyncio
import time
from typing import ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tfmemtop.cluster import text as words
from tfmemtop.cluster.client import Client, NoAnswer
from tfmemtop.cluster.judge import Judged, Kind, rising_as
from tfmemtop.cluster.one_gpu import OneGpu
from tfmemtop.cluster.overview import Pool
from tfmemtop.cluster.watch import Seen, in_thread
from tfmemtop.findings.finding import Finding, Severity
from tfmemtop.findings.grouping import grouped, say_group
from tfmemtop.findings.leaks import Leak
from tfmemtop.findings.rules import findings_of_figures
from tfmemtop.state import State, apply
from tfmemtop.state.views import panels
from tfmemtop.ui.draw.lines import Line, Panel, fit
from tfmemtop.ui.draw.palette import BOLD, DIM, ERROR, TITLE, Glyphs
from tfmemtop.ui.draw.text import wrap
from tfmemtop.ui.draw.window import SPANS
from tfmemtop.ui.panels.cluster_rows import mark_of
from tfmemtop.ui.panels.device_panel import DevicesPanel
from tfmemtop.ui.panels.key_bar import HintLine
from tfmemtop.ui.panels.why_panel import MARKS, finding_lines, headline_style
from tfmemtop.ui.screens.drawn import Drawn

_FIRST_SPAN = next(index for index, (_, said) in enumerate(SPANS) if said == "1 h")
FIRST_S = SPANS[_FIRST_SPAN][0]
"""Seconds of history that are read first. A longer history is read when the user chooses a longer span."""


class GpuHeader(Panel):
    """Two lines: the GPU's host, job and user; then what is wrong with it, or why there are no new figures."""

    DEFAULT_CSS = "GpuHeader { height: 2; }"

    def __init__(self, row: Judged, url: str, *, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs)
        self.judged = row
        self.trouble: NoAnswer | None = None
        self.reading = True
        self.span_s = FIRST_S
        self._url = url

    def begin_reading(self) -> None:
        """Show that the history is being read."""
        self.reading = True
        self.redraw()

    def end_reading(self, span_s: float, trouble: NoAnswer | None = None) -> None:
        """The history of *span_s* seconds has been read, or *trouble* came instead."""
        self.reading = False
        self.trouble = trouble
        if trouble is None:
            self.span_s = span_s

    def take(self, trouble: NoAnswer | None) -> None:
        """New figures have been read, or *trouble* came instead."""
        self.trouble = trouble

    def judge(self, judged: Judged) -> None:
        """Use *judged* for what is wrong with the GPU."""
        self.judged = judged

    def build(self, width: int, height: int) -> list[Line]:
        whose = fit(f" {words.whose(self.judged.row)}", max(0, width - 20), self.glyphs)
        first: Line = [Segment(" tfmemtop cluster ", TITLE), Segment(whose, BOLD)]
        if self.trouble is not None:
            return [first, [Segment(fit(f" {words.no_answer(self._url, self.trouble)}", width, self.glyphs), ERROR)]]
        mark, style = mark_of(self.judged, self.glyphs)
        told = words.ASKING if self.reading else words.in_short(self.judged) or words.NOTHING_WRONG
        if not self.reading and not panels(self.state):
            told = words.no_history(self.span_s)
        return [first, [Segment(fit(f" {mark} {told}", width, self.glyphs), DIM if self.reading else style)]]


class FoundPanel(Panel):
    """What is wrong according to the overview, and what the rules find in the figures of this GPU."""

    def __init__(self, row: Judged, *, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs)
        self.judged = row
        self.findings: list[Finding] = []
        self.twice: set[Kind] = set()
        """What the overview reports and a finding describes in more detail: it is shown only once, as the finding."""

    def judge(self, judged: Judged, findings: list[Finding], twice: set[Kind]) -> None:
        """Use *judged* for what is wrong with the GPU, and *findings*, which describe the kinds *twice* too."""
        self.judged, self.findings, self.twice = judged, findings, twice

    def build(self, width: int, height: int) -> list[Line]:
        lines = [self.title_line(width, "Why")]
        room = max(10, width - 4)
        wrong = "!", mark_of(self.judged, self.glyphs)[1]
        row, remark = self.judged.row, MARKS[Severity.INFO]
        groups = grouped(self.findings)
        wrongs = [one for one in self.judged.wrongs if one.kind not in self.twice]
        told = [(remark if one.kind >= Kind.GONE else wrong, words.at_length(row, one)) for one in wrongs]
        for (mark, style), sentence in [*told, *((remark, words.remark(key)) for key in self.judged.remarks)]:
            rows = enumerate(wrap(sentence, room))
            lines += [[Segment("   " if at else f" {mark} ", style), Segment(text)] for at, text in rows]
        for group in groups:
            said = say_group(group)
            found = finding_lines(said.headline, said.figures, room, headline_style(group.first.severity))
            mark, style = MARKS[group.first.severity]
            lines += [[Segment("   " if at else f" {mark} ", style), *line] for at, line in enumerate(found)]
        if len(lines) == 1:
            lines.append([Segment(f"   {words.NOTHING_WRONG}", DIM)])
        return lines

    def wanted_height(self, width: int) -> int:
        """Return how many lines the panel can fill."""
        return len(self.build(width, 0))


class GpuScreen(Drawn, Screen[None]):
    """The screen of one GPU. It reads the history when it is opened, then new figures every *interval_s* seconds."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+c,enter", "close", show=False),
        Binding("left_square_bracket", "span(-1)", show=False),
        Binding("right_square_bracket", "span(1)", show=False),
        Binding("s", "scale", show=False),
        Binding("w", "whole", show=False),
    ]

    def __init__(self, client: Client, row: Judged, interval_s: float, *, glyphs: Glyphs, color: bool) -> None:
        super().__init__()
        self._client, self._judged, self._interval_s = client, row, interval_s
        self._wake = asyncio.Event()
        self._gpu = OneGpu(client, row.row, FIRST_S)
        self._wanted: OneGpu | None = None  # the GPU with another span of history, until that has been read
        self.header = GpuHeader(row, client.address.url, glyphs=glyphs)
        self.device = DevicesPanel(glyphs=glyphs, color=color, span=_FIRST_SPAN)
        self.found = FoundPanel(row, glyphs=glyphs)
        self.keys = HintLine(self.hints, glyphs=glyphs)

    @property
    def key(self) -> Pool:
        """The key of the row that this screen shows."""
        return self._judged.row.key

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
        await self._open(self._gpu)
        while True:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), self._interval_s)
            except asyncio.TimeoutError:
                pass
            gpu = self._gpu
            if not self.header.reading and (self._wanted or gpu.state.session is None):
                await self._open(self._wanted or gpu)
                continue
            try:
                batch = await in_thread(gpu.follow)
            except NoAnswer as trouble:
                self.header.take(trouble)
            else:
                self.header.take(None)
                for event in batch:
                    apply(gpu.state, event)
            self.refresh_state(gpu.state)

    async def _open(self, gpu: OneGpu) -> None:
        """Read the history of *gpu*. Until it has been read, what was shown before stays."""
        self.header.begin_reading()
        try:
            await in_thread(gpu.open)
        except NoAnswer as trouble:
            self.header.end_reading(gpu.span_s, trouble)
        else:
            self._gpu = gpu
            if self._wanted is gpu:
                self._wanted = None
            self.header.end_reading(gpu.span_s)
        self.refresh_state(self._gpu.state)

    def hurry(self) -> None:
        """Read the new figures now."""
        self._wake.set()

    def look(self, seen: Seen) -> None:
        """Use *seen*, the newest overview, for what is wrong with this GPU."""
        found = next((one for one in seen.overview.rows if one.row.key == self.key), None)
        if found is not None:
            self._judged = found
            self.refresh_state(self._gpu.state)

    def refresh_state(self, state: State) -> None:
        state = self._gpu.state
        session = state.session
        if session is not None:
            state.now = max(state.now, time.time() + self._gpu.ahead_s - session.started)
        width, height = self.app.size
        room = height - 3
        found = findings_of_figures(state)
        # A rise is shown with one figure only: that of the rule, and not also that of the overview.
        leak = next((one for one in found if isinstance(one, Leak) and self._gpu.is_own(one)), None)
        judged = self._judged if leak is None else rising_as(self._judged, leak.rise, leak.left_s)
        self.header.judge(judged)
        self.found.judge(judged, found, set() if leak is None else {Kind.LEAKING})
        lines = min(self.found.wanted_height(width), max(3, room // 2))
        self.found.styles.height = lines
        self.device.display = bool(panels(state))
        for part in (self.device, self.found, self.header, self.keys):
            part.show(state)

    def action_close(self) -> None:
        self.dismiss(None)

    def action_span(self, step: int) -> None:
        """Show a shorter or a longer span. Its history is read if it has not been, or only in less detail."""
        self.device.cycle_span(step)
        span_s = SPANS[self.device.span][0]
        if span_s > self._gpu.span_s or (self._gpu.span_s > FIRST_S >= span_s and self.device.span <= _FIRST_SPAN):
            self._wanted = OneGpu(self._client, self._judged.row, max(FIRST_S, span_s))
            self.run_worker(self._open(self._wanted), name="span", exclusive=True, group="span", exit_on_error=True)

    def action_whole(self) -> None:
        self.device.toggle_whole()

    def action_scale(self) -> None:
        self.device.next_scale()
