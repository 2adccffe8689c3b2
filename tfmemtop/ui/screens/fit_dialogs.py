"""F: the dialogs of a search: what to search for, its progress, and what it has found."""

from collections.abc import Callable
from enum import Enum
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType

from tfmemtop.experiments.fit.session import SessionFit
from tfmemtop.experiments.fit.text import conclusion, goal_text, table, trial_words
from tfmemtop.findings.proposed_limit import IN_THE_SCRIPT
from tfmemtop.state import State
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, DIM, GOOD, KEY, PLAIN, WARNING, Glyphs
from tfmemtop.ui.draw.text import chop, wrap
from tfmemtop.ui.screens.dialog import COPY_LINES, Hint, PageDialog
from tfmemtop.ui.screens.fit_text import FoundValue, found_by
from tfmemtop.units import counted

_POOLS_FROM = 84
"""Width in cells from which the table has room for the size of the pool."""


class AfterSearch(Enum):
    """What the user wants to do after the search has ended or has been stopped."""

    GO_ON = "go_on"
    NEW = "new"
    RELAUNCH = "relaunch"


class FitDialog(PageDialog[AfterSearch]):
    """The state of a search: its tries and the progress of the present one; at the end, the result and how to set it.

    While the search goes on, Esc and F stop it, and Enter only closes this box.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "app.pop_screen", show=False),
        Binding("F", "same_key", show=False),
        Binding("N", "new", show=False),
        Binding("R", "relaunch", show=False),
        Binding("y", "copy", show=False),
    ]

    def __init__(self, search: SessionFit, *, stop: Callable[[], None], glyphs: Glyphs) -> None:
        what = "smallest memory limit" if search.plan.wanted is None else "largest value"
        super().__init__(f"The {what} that works", glyphs=glyphs, width=124)
        self._fit = search
        self._end_it = stop

    def refresh_state(self, state: State) -> None:
        self.redraw()

    @property
    def _found(self) -> FoundValue | None:
        """What the search has found; ``None`` while it goes on."""
        return None if self._fit.going else found_by(self._fit)

    def hints(self) -> list[Hint]:
        if self._fit.going:
            return [("F Esc", "stop, leave the run going"), ("Enter", "hide this, go on")]
        hints: list[Hint] = []
        if found := self._found:
            hints += [("R", f"relaunch with {found.words}"), *([("y", COPY_LINES)] if found.code else [])]
        if self._fit.can_go_on:
            hints.append(("F", "go on with the search"))
        return [*hints, ("N", "new search"), ("Esc", "close")]

    def body(self, width: int) -> list[Line]:
        search = self._fit
        tries, wanted = search.plan.tries, search.plan.wanted
        goal = f"{goal_text(search.plan.goal)}, in at most {counted(tries, 'try', 'tries')}"
        goal += f": {' '.join(search.plan.command)}"
        lines: list[Line] = [[Segment(fit(goal, width, self.glyphs), DIM)], []]
        rows = table(search.search, pools=width >= _POOLS_FROM)
        for index, row in enumerate(rows):
            style = BOLD if index == 0 else GOOD if row.passed else WARNING
            lines.append([Segment(fit(row.text, width, self.glyphs), style)])
        if search.going:
            trial = trial_words(search.trial, wanted)
            mark = f"{self.glyphs.running} try {search.number} of {tries}: {trial}  "
            lines.append([Segment(mark, KEY), Segment(fit(search.progress, width - len(mark), self.glyphs))])
            return lines
        lines += [[]] if rows else []
        for index, sentence in enumerate(conclusion(search.search, search.stopped, search.hint)):
            style = BOLD if index == 0 else PLAIN
            lines += [[Segment(part, style)] for part in wrap(sentence, max(10, width))]
        return lines + self._next_time(max(10, width))

    def _next_time(self, width: int) -> list[Line]:
        """Return how to use what was found."""
        found = self._found
        if found is None:
            return []
        lines: list[Line] = [
            [],
            [Segment(found.margin, BOLD), Segment("[R]", KEY), Segment(" relaunches with it. Next time:")],
        ]
        lines += [[Segment("  " + part, GOOD)] for part in chop(found.command, width - 2, "  ")]
        if found.code:
            lines += [[Segment(part)] for part in wrap(IN_THE_SCRIPT, width)]
        return lines + [[Segment("  " + part, GOOD)] for line in found.code for part in chop(line, width - 2)]

    def action_cancel(self) -> None:
        if self._fit.going:
            self._end_it()
            self.redraw()
        else:
            self.dismiss(None)

    def action_same_key(self) -> None:
        if self._fit.can_go_on:
            self.dismiss(AfterSearch.GO_ON)
        else:
            self.action_cancel()

    def action_new(self) -> None:
        if not self._fit.going:
            self.dismiss(AfterSearch.NEW)

    def action_relaunch(self) -> None:
        if self._found:
            self.dismiss(AfterSearch.RELAUNCH)

    def action_copy(self) -> None:
        if self._found:
            self.copy(self._found.code)
