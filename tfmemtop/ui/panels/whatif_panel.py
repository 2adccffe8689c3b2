"""The panel of what other settings would do to a pool: a row for each setting that was replayed."""

from rich.segment import Segment
from textual import events as textual_events
from textual.geometry import clamp

from tfmemtop.events import SettingReplayed
from tfmemtop.reports import whatif
from tfmemtop.reports.whatif import unreplayed_remedy, unreplayed_text
from tfmemtop.state import State
from tfmemtop.state.predicted import Predicted, predicted, together
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, ERROR, GOOD, PLAIN, UNICODE, WARNING, Glyphs
from tfmemtop.ui.draw.text import wrap
from tfmemtop.ui.screens.full_screen import MovedPanel
from tfmemtop.units import UNKNOWN

TITLE = "What other settings would do"
TAKE = "take for the next run"
REPLAYING = "The recorded allocations are being replayed under many settings. That takes some seconds."
NOT_ENOUGH = (
    "No allocations have been recorded from the start of this run. The probe records them until the third step; "
    "the table needs all of them."
)
STILL_TRACED = (
    "All allocations of this run are being recorded. The recording ends now, and the table follows in some seconds."
)
NOT_HERE = "Not replayed: TensorFlow of that version is not on this machine."


def failed(why: str) -> str:
    """Return the line where no table can be made, for the reason *why*."""
    return f"The recorded allocations cannot be replayed: {why}"


def taken(limit: str, growth: str) -> str:
    """Return the line after a row was chosen for the next run."""
    return f"The next run has growth {growth}, limit {limit}. [R] starts it."


def taken_limit(limit: str) -> str:
    """Return the line after a row was chosen for the next run, where there is no choice of growth."""
    return f"The next run has limit {limit}. [R] starts it."


_DROPPED_FIRST = ("fragmented", "largest free", "grew", "cached", "process total")
"""Columns that are left out first if there is little room, in this order."""
_LOOKS = {True: GOOD, None: WARNING, False: ERROR}
_BASIS_LEAST, _TABLE_LEAST = 2, 6  # lines on what the table is based on; lines left for the table
_REMARK_LEAST = 12  # cells beside the table from which a row's remark stands there
_ROWS_LEAST = 4  # rows of the table that come before the sentences below it
_LAST_LEAST = 14  # lines of the panel from which the smallest limits stand below the table


class WhatIfPanel(MovedPanel):
    """The table of the settings that were replayed. ``said`` is shown instead while there is no table."""

    def __init__(self, state: State, *, glyphs: Glyphs = UNICODE) -> None:
        super().__init__(glyphs=glyphs)
        self.state = state
        self.said = ""
        self.which = 0  # index of the pool shown, modulo the number of pools
        self._at = 0
        self._top = 0
        self._page = 1
        self._beside = 0  # cells right of the table
        self._spots: dict[int, int] = {}

    @property
    def view(self) -> Predicted | None:
        """The predictions for the pool that is shown; ``None`` if there are none."""
        known = predicted(self.state)
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
            told = [[Segment(f"  {line}", BOLD)] for line in wrap(self.said, width - 4)]
            return [self.title_line(width, TITLE), [], *told]
        lines = [self.title_line(width, whatif.title(view))]
        basis = list(whatif.basis(view))
        if view.replayed.is_missing:
            basis = [unreplayed_text(view.replayed), unreplayed_remedy(view.replayed)]
        lines += _wrapped(basis, width)[: max(_BASIS_LEAST, height - _TABLE_LEAST)]
        rows = view.rows
        if not rows:
            return lines
        shared = [row for row in together(predicted(self.state)) if view.device in row.devices]
        last = [*whatif.smallest(view), *map(whatif.together_sentence, shared)]
        last += [*filter(None, [whatif.asynchronous(view)]), whatif.NO_TIME]
        at = clamp(self._at, 0, len(rows) - 1)
        below: list[Line] = []
        for sentence in last if height >= _LAST_LEAST else []:  # only whole sentences, as many as fit
            more = _wrapped([sentence], width)
            if len(lines) + len(below) + len(more) + 4 + min(len(rows), _ROWS_LEAST) > height:
                break
            below += more
        room = max(1, height - len(lines) - len(below) - 4)
        self._page = room
        self._top = clamp(clamp(self._top, at - room + 1, at), 0, max(0, len(rows) - room))
        seen = range(self._top, min(len(rows), self._top + room))
        lines += self._table(view, rows, seen, at, width, len(lines))
        remark = whatif.remark(view, rows[at])
        if len(remark) > self._beside or self._beside < _REMARK_LEAST:
            lines += [[Segment(f"   {line}", DIM)] for line in wrap(remark, width - 4)[:2]]
        return [*lines, [], *below]

    def _table(
        self, view: Predicted, rows: list[SettingReplayed], seen: range, at: int, width: int, above: int
    ) -> list[Line]:
        texts = [whatif.cells(view, row) for row in rows]
        used = [
            place
            for place, name in enumerate(whatif.COLUMNS)
            if any(text[place] not in ("", UNKNOWN) for text in texts)
        ]
        headings = [name.upper() for name in whatif.COLUMNS]
        head, *cells = whatif.aligned([headings, *texts], used)
        for name in _DROPPED_FIRST:
            if 2 + sum(len(cell) + 2 for cell in head) > width:
                used = [place for place in used if whatif.COLUMNS[place] != name]
                head, *cells = whatif.aligned([headings, *texts], used)
        lines: list[Line] = [[Segment(fit("  " + "  ".join(head), width, self.glyphs), DIM)]]
        taken = 2 + sum(len(cell) + 2 for cell in head)
        self._beside = width - taken
        for index in seen:
            self._spots[above + len(lines)] = index
            mark = (">" if self.glyphs.ascii else "▸") if index == at else " "
            line: Line = [Segment(f"{mark} ", BOLD)]
            for place, cell in zip(used, cells[index], strict=True):
                look = _LOOKS[view.fits(rows[index])] if whatif.COLUMNS[place] == "fits" else PLAIN
                look = CHOSEN if index == at and place == used[0] else look
                line += [Segment(cell, look), Segment("  ")]
            if self._beside >= _REMARK_LEAST:
                line.append(Segment(fit(whatif.remark(view, rows[index]), self._beside, self.glyphs), DIM))
            lines.append(Segment.adjust_line_length(line, width))
        return lines

    def move(self, count: int) -> None:
        """Move the cursor by *count* rows."""
        rows = self.view.rows if self.view else []
        self._at = clamp(self._at + count, 0, max(0, len(rows) - 1))
        self.redraw()

    def page(self, count: int) -> None:
        """Move the cursor by *count* times the rows that fit on the screen."""
        self.move(count * max(1, self._page - 1))

    def on_click(self, click: textual_events.Click) -> None:
        if click.y in self._spots:
            self._at = self._spots[click.y]
            self.redraw()


def _wrapped(told: list[str] | list[str | None], width: int) -> list[Line]:
    return [[Segment(f" {line}", DIM)] for text in told if text for line in wrap(text, max(10, width - 2))]
