"""X: what other settings would do to a pool, a row for each setting. Enter takes one of them for the next run."""

from operator import itemgetter
from typing import ClassVar

from rich.segment import Segment
from textual import events as textual_events
from textual.binding import Binding, BindingType
from textual.geometry import clamp

from tfmemtop.events import HoldersNow, SettingReplayed
from tfmemtop.experiments.session.session import Session
from tfmemtop.experiments.session.whatif import ask, still_traced, unreplayed
from tfmemtop.failure import describe, reason
from tfmemtop.findings.missing import only_tensorflow, unreplayed_remedy, unreplayed_text
from tfmemtop.findings.rules.attached import NO_ALLOCATIONS
from tfmemtop.reports import whatif
from tfmemtop.state import apply
from tfmemtop.state.predicted import Predicted, predicted
from tfmemtop.ui.draw.columns import Column, fitting_columns, names
from tfmemtop.ui.draw.glyphs import ARROWS, HERE
from tfmemtop.ui.draw.lines import Line, fit, paragraph
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, ERROR, GOOD, PLAIN, WARNING
from tfmemtop.ui.draw.text import wrap
from tfmemtop.ui.screens.full_screen import CoveringPanel
from tfmemtop.units import UNKNOWN, format_bytes, sentence

TITLE = "What other settings would do"
TAKE = "take for the next run"
REPLAYING = "The recorded allocations are being replayed under many settings. That takes some seconds."
NOT_ENOUGH = "No allocations have been recorded from the start of this run. The table needs all of them."
STILL_TRACED = "The allocations that were recorded until now are being read. The table follows in some seconds."
NOT_HERE = "Not replayed: TensorFlow of that version is not on this machine."


_FAILED = "The recorded allocations cannot be replayed: "
_PRIORITIES = {"fragmented": 1, "largest free": 2, "grew": 3, "cached": 4, "process total": 5}
"""Columns that are left out first if there is little room, those with the lowest number before others."""
_LOOKS = {True: GOOD, None: WARNING, False: ERROR}
_BASIS_LEAST, _TABLE_LEAST = 2, 6  # lines on what the table is based on; lines left for the table
_ROWS_LEAST = 4  # rows of the table that come before the sentences below it
_LAST_LEAST = 14  # lines of the panel from which the smallest limits stand below the table


class WhatIfPanel(CoveringPanel):
    """The table of the settings that were replayed. ``said`` is shown instead while there is no table.

    When the panel is first shown, recorded traces are replayed, unless that has been done already.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("X", "close", show=False),
        Binding("enter", "take", show=False),
        Binding("tab", "other(1)", show=False, priority=False),
        Binding("shift+tab", "other(-1)", show=False),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.said = ""
        self.which = 0  # index of the pool shown, modulo the number of pools
        self._at = 0
        self._spots: dict[int, int] = {}

    @property
    def view(self) -> Predicted | None:
        """The predictions for the pool that is shown; ``None`` if there are none."""
        known = whatif.views(self.state)
        return known[self.which % len(known)] if known else None

    @property
    def chosen(self) -> SettingReplayed | None:
        """The row under the cursor."""
        rows = self.view.rows if self.view else []
        return rows[clamp(self._at, 0, len(rows) - 1)] if rows else None

    def build(self, width: int, height: int) -> list[Line]:
        self._spots = {}
        view = self.view
        if view is None:
            return [self.title_line(width, TITLE), [], *paragraph(self.said, width, BOLD, "  ")]
        lines = [self.title_line(width, whatif.title(view))]
        basis = list(whatif.basis(view))
        if view.replayed.is_missing:
            basis = [unreplayed_text(view.replayed), unreplayed_remedy(view.replayed)]
        told = [line for text in basis if text for line in paragraph(text, width, DIM)]
        lines += told[: max(_BASIS_LEAST, height - _TABLE_LEAST)]
        rows = view.rows
        if not rows:
            return lines
        last = [*whatif.smallest(view), whatif.paces(view), *filter(None, [whatif.asynchronous(view)])]
        at = clamp(self._at, 0, len(rows) - 1)
        limits: list[Line] = [[Segment(fit(f" {line}", width), BOLD)] for line in whatif.limits(view)]
        below = limits if height >= _LAST_LEAST else []
        for told_last in last if height >= _LAST_LEAST else []:  # only whole sentences, as many as fit
            more = paragraph(told_last, width, DIM)
            if len(lines) + len(below) + len(more) + 4 + min(len(rows), _ROWS_LEAST) > height:
                break
            below += more
        room = max(1, height - len(lines) - len(below) - 4)
        lines += self._table(view, rows, self.in_view(len(rows), room, at), at, width, len(lines))
        lines += [[Segment(f"   {line}", DIM)] for line in wrap(whatif.remark(view, rows[at]), width - 4)[:2]]
        return [*lines, [], *below]

    def _table(
        self, view: Predicted, rows: list[SettingReplayed], seen: range, at: int, width: int, above: int
    ) -> list[Line]:
        texts = [whatif.cells(view, row) for row in rows]
        columns: list[Column[tuple[str, ...]]] = [
            Column(
                name.upper(),
                max(len(text[place]) for text in (whatif.COLUMNS, *texts)),
                _PRIORITIES.get(name, 100),
                itemgetter(place),
                left=name in whatif.LEFT,
            )
            for place, name in enumerate(whatif.COLUMNS)
            if any(text[place] not in ("", UNKNOWN) for text in texts)
        ]
        columns = fitting_columns(columns, width - 2)
        lines: list[Line] = [[Segment(fit(f"  {names(columns)}", width), DIM)]]
        for index in seen:
            self._spots[above + len(lines)] = index
            mark = HERE if index == at else " "
            line: Line = [Segment(f"{mark} ", BOLD)]
            for column in columns:
                look = _LOOKS[view.fits(rows[index])] if column.name == "FITS" else PLAIN
                look = CHOSEN if index == at and column is columns[0] else look
                line += [Segment(column.pad(column.value(texts[index])), look), Segment(" ")]
            lines.append(Segment.adjust_line_length(line, width))
        return lines

    def move(self, count: int) -> None:
        """Move the cursor by *count* rows."""
        rows = self.view.rows if self.view else []
        self._at = clamp(self._at + count, 0, max(0, len(rows) - 1))
        self.redraw()

    def on_click(self, click: textual_events.Click) -> None:
        if click.y in self._spots:
            self._at = self._spots[click.y]
            self.redraw()

    def on_mount(self) -> None:
        if self.session.may_change:
            for pid in still_traced(self.state):
                self.session.send(HoldersNow(pid=pid))
        self.run_worker(self._replay(), name="replay", exit_on_error=False)

    async def _replay(self) -> None:
        """Have the recorded traces replayed, and draw each answer when it is in the state."""
        state = self.session.state
        pools = unreplayed(state)
        here = [found for pool in pools if (found := pool.here())]
        self.said = REPLAYING if here else NOT_HERE
        if not pools:
            tracing = any(still_traced(state))
            self.said = STILL_TRACED if tracing else NOT_ENOUGH
            if others := NO_ALLOCATIONS if self.session.outside else only_tensorflow(state):
                self.said = f"{sentence(others)}."
        self.changed()
        for pool in here:
            try:
                apply(state, await ask(pool))
            except OSError as error:
                self.said = _FAILED + describe(error)
            self.changed()

    def hints(self) -> list[tuple[str, str]]:
        hints = []
        if self.chosen is not None:
            hints.append((ARROWS, "setting"))
            if self.session.may_change:
                hints += [("Enter", TAKE), ("R", "relaunch")]
        known = predicted(self.state)
        return [*hints, *([("Tab", known[(self.which + 1) % len(known)].device)] if len(known) > 1 else [])]

    def action_other(self, step: int) -> None:
        self.which = (self.which + step) % max(1, len(predicted(self.state)))
        self.changed()

    def action_take(self) -> None:
        """Use the setting under the cursor for the next run."""
        row, upcoming, state = self.chosen, self.session.next, self.session.state
        if not self.session.may_change:
            self.app.notify(self.session.why_unchangeable)
        elif row is not None and upcoming is not None:
            try:
                self.session.choose(upcoming.with_replayed(row, state))
            except ValueError as error:
                self.app.notify(reason(error))
                return
            limit = "none" if row.limit is None else format_bytes(row.limit)
            growth = f"growth {'on' if row.growth else 'off'}, " if state.devices else ""
            self.app.notify(f"The next run has {growth}limit {limit}. [R] starts it.")
            self.changed()
