"""F: the dialogs of a search: what to search for, its progress, and what it has found."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType

from tfmemtop.experiments.fit.plan import Sought
from tfmemtop.experiments.fit.session import SessionFit
from tfmemtop.experiments.fit.text import conclusion, table
from tfmemtop.findings.fitting import IN_THE_SCRIPT, code, command_line
from tfmemtop.reports import labels
from tfmemtop.state import State
from tfmemtop.suggested import SuggestedLimit
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, DIM, GOOD, KEY, PLAIN, UNICODE, WARNING, Glyphs
from tfmemtop.ui.draw.text import chop, wrap
from tfmemtop.ui.screens import fit_text as fit_screen
from tfmemtop.ui.screens import fit_text as searching
from tfmemtop.ui.screens.dialog import COPIED, COPY_LINES, Hint, InputDialog, PageDialog, Suggestion
from tfmemtop.units import format_bytes


class AfterSearch(Enum):
    """What the user wants to do after the search has ended or has been stopped."""

    GO_ON = "go_on"
    NEW = "new"
    RELAUNCH = "relaunch"


_POOLS_FROM = 84
"""Width in cells from which the table has room for the size of the pool."""


@dataclass(frozen=True)
class Asked:
    """What the user is told before a search begins."""

    running: str  # the run that the search would end, empty if none
    of: str  # the device whose limit is sought: "each GPU" or "the CPU pool"
    growth: str | None


class AskFit(InputDialog[Sought]):
    """The dialog that asks how far the script must get, and in how many tries. Enter begins the search."""

    def __init__(
        self,
        asked: Asked,
        *,
        read: Callable[[str], Sought],
        value: str,
        suggestions: Sequence[Suggestion],
        glyphs: Glyphs,
    ) -> None:
        super().__init__(
            searching.TITLE,
            text=searching.what_is_done(asked.of, asked.growth, asked.running),
            value=value,
            read=read,
            suggestions=suggestions,
            glyphs=glyphs,
            width=84,
        )
        self._ends = asked.running

    def hints(self) -> list[Hint]:
        (_, *others) = super().hints()
        return [("Enter", fit_screen.begin(self._ends)), *others]


class FitDialog(PageDialog[AfterSearch]):
    """The state of a search: its tries and the progress of the present one; at the end, the result and how to set it.

    While the search goes on, Esc and F stop it, and Enter only closes this box.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "hide", show=False),
        Binding("F", "same_key", show=False),
        Binding("N", "new", show=False),
        Binding("R", "relaunch", show=False),
        Binding("y", "copy", show=False),
    ]

    def __init__(self, search: SessionFit, *, stop: Callable[[], None], glyphs: Glyphs = UNICODE) -> None:
        super().__init__(fit_screen.title(search), glyphs=glyphs, width=124)
        self._fit = search
        self._end_it = stop

    def refresh_state(self, state: State) -> None:
        self.redraw()

    def hints(self) -> list[Hint]:
        search = self._fit
        if search.going:
            return [("F Esc", fit_screen.STOP), ("Enter", fit_screen.HIDE)]
        hints: list[Hint] = []
        if self._advice is not None:
            hints += [("R", fit_screen.relaunch_with(format_bytes(self._advice.size))), ("y", COPY_LINES)]
        elif self._found is not None:
            hints.append(("R", fit_screen.relaunch_with(self._found)))
        if search.can_go_on:
            hints.append(("F", fit_screen.GO_ON))
        return [*hints, ("N", labels.NEW_SEARCH), ("Esc", "close")]

    @property
    def _advice(self) -> SuggestedLimit | None:
        return self._fit.plan.suggested(self._fit.search)

    @property
    def _found(self) -> str | None:
        """The value that was found, such as ``batch=1024``; ``None`` if there is none, or a limit was searched."""
        wanted, found = self._fit.plan.wanted, self._fit.search.found
        return None if wanted is None or found is None else f"{wanted.name}={found}"

    def body(self, width: int) -> list[Line]:
        search = self._fit
        goal = f"{fit_screen.goal(search)}: {' '.join(search.plan.command)}"
        lines: list[Line] = [[Segment(fit(goal, width, self.glyphs), DIM)], []]
        lines += self._table(width)
        if search.going:
            mark = f"{self.glyphs.running} {fit_screen.under_way(search)}  "
            lines.append([Segment(mark, KEY), Segment(fit(search.progress, width - len(mark), self.glyphs))])
            return lines
        lines += [[]] if search.search.tried else []
        for index, sentence in enumerate(conclusion(search.search, search.stopped, search.hint)):
            style = BOLD if index == 0 else PLAIN
            lines += [[Segment(part, style)] for part in wrap(sentence, max(10, width))]
        return lines + self._setting(width)

    def _table(self, width: int) -> list[Line]:
        rows = table(self._fit.search, pools=width >= _POOLS_FROM)
        styles = [BOLD, *(GOOD if row.passed else WARNING for row in rows[1:])]
        return [[Segment(fit(row.text, width, self.glyphs), style)] for row, style in zip(rows, styles, strict=False)]

    def _setting(self, width: int) -> list[Line]:
        found = self._advice
        if found is None and self._found is not None:
            lines: list[Line] = [[], [Segment("[R]", KEY), Segment(fit_screen.NEXT_TIME)]]
            started = shlex.join(self._fit.plan.argv(self._fit.search.found))
            return lines + [[Segment("  " + part, GOOD)] for part in chop(started, max(10, width - 2), "  ")]
        if found is None:
            return []
        lines = [[], [Segment(fit_screen.with_margin(found.size), BOLD)]]
        lines[-1] += [Segment("[R]", KEY), Segment(fit_screen.NEXT_TIME)]
        started = command_line(found, self._fit.plan.command)
        lines += [[Segment("  " + part, GOOD)] for part in chop(started, max(10, width - 2), "  ")]
        lines += [[Segment(part)] for part in wrap(IN_THE_SCRIPT, max(10, width))]
        return lines + [[Segment("  " + part, GOOD)] for line in code(found) for part in chop(line, max(10, width - 2))]

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

    def action_hide(self) -> None:
        self.dismiss(None)

    def action_new(self) -> None:
        if not self._fit.going:
            self.dismiss(AfterSearch.NEW)

    def action_relaunch(self) -> None:
        if not self._fit.going and (self._advice is not None or self._found is not None):
            self.dismiss(AfterSearch.RELAUNCH)

    def action_copy(self) -> None:
        """Copy the lines for the script to the terminal's clipboard by OSC 52, even if it is on another machine."""
        if not self._fit.going and self._advice is not None:
            self.app.copy_to_clipboard("\n".join(code(self._advice)) + "\n")
            self.app.notify(COPIED, timeout=3)
