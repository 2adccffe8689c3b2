"""F: what to search for, how the search gets on, and what it has found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType

from tfmemtop.fit.plan import parse_goal
from tfmemtop.fit.session import SessionFit
from tfmemtop.fit.watch import Goal
from tfmemtop.state import State
from tfmemtop.suggested import SuggestedLimit
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, DIM, GOOD, KEY, PLAIN, UNICODE, WARNING, Glyphs
from tfmemtop.ui.draw.text import chop, wrap
from tfmemtop.ui.screens.dialog import Dialog, Hint, InputDialog, Suggestion
from tfmemtop.units import format_bytes
from tfmemtop.words import searching
from tfmemtop.words.dialogs import COPIED
from tfmemtop.words.fit import (
    conclusion,
    from_the_largest,
    goal_text,
    limit_words,
    progress,
    table,
)
from tfmemtop.words.limits import IN_THE_SCRIPT, code, command_line


class Answer(Enum):
    """What the user wants once the search is over or has been stopped."""

    GO_ON = "go_on"
    NEW = "new"
    RELAUNCH = "relaunch"


_POOLS_FROM = 84
"""Cells from which on the table has room for how large the pool became."""


@dataclass(frozen=True)
class Asked:
    """What is told before anything is done: what ends for it, and whose limit is sought."""

    running: str  # the run that would be ended, empty if none
    of: str  # "each GPU", "the CPU pool"
    growth: str | None


class AskFit(InputDialog[tuple[Goal, int]]):
    """How far the script is to get, and in how many tries; Enter begins."""

    def __init__(self, asked: Asked, *, value: str, suggestions: Sequence[Suggestion], glyphs: Glyphs) -> None:
        super().__init__(
            searching.TITLE,
            text=searching.what_is_done(asked.of, asked.growth, asked.running),
            value=value,
            read=parse_goal,
            suggestions=suggestions,
            glyphs=glyphs,
            width=84,
        )
        self._ends = asked.running

    def hints(self) -> list[Hint]:
        begin = f"end {self._ends[:1].lower()}{self._ends[1:]} and begin" if self._ends else "begin"
        (_, *others) = super().hints()
        return [("Enter", begin), *others]


class FitDialog(Dialog[Answer]):
    """The search as it stands: its tries, the one under way; at the end what was found and how to set it.

    While it goes, Esc and F stop it, and Enter only closes this box.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "hide", show=False),
        Binding("F", "same_key", show=False),
        Binding("N", "new", show=False),
        Binding("R", "relaunch", show=False),
        Binding("y", "copy", show=False),
    ]

    def __init__(self, search: SessionFit, *, stop: Callable[[], None], glyphs: Glyphs = UNICODE) -> None:
        super().__init__(searching.RESULT, glyphs=glyphs, width=124)
        self._fit = search
        self._end_it = stop

    def refresh_state(self, state: State) -> None:
        self.redraw()

    def hints(self) -> list[Hint]:
        search = self._fit
        if search.going:
            return [("F Esc", "stop, leave the run going"), ("Enter", "hide this, go on")]
        hints: list[Hint] = []
        if self._advice is not None:
            hints += [("R", f"relaunch with {format_bytes(self._advice.size)}"), ("y", "copy the lines")]
        if search.can_go_on:
            hints.append(("F", "go on with the search"))
        return [*hints, ("N", "new search"), ("Esc", "close")]

    @property
    def _advice(self) -> SuggestedLimit | None:
        return self._fit.plan.suggested(self._fit.search)

    def body(self, width: int) -> list[Line]:
        search, plan = self._fit, self._fit.plan
        tries = "1 try" if plan.tries == 1 else f"{plan.tries} tries"
        goal = f"{goal_text(plan.goal)}, in at most {tries}"
        lines: list[Line] = [[Segment(fit(f"{goal}: {' '.join(plan.command)}", width, self.glyphs), DIM)], []]
        lines += self._table(width)
        if search.going:
            mark = f"{self.glyphs.running} try {search.number} of {plan.tries}: {limit_words(search.limit)}  "
            lines.append([Segment(mark, KEY), Segment(fit(progress(search), width - len(mark), self.glyphs))])
            return lines
        lines += [[]] if search.search.tried else []
        for index, sentence in enumerate(conclusion(search.search, search.stopped, search.hint)):
            style = BOLD if index == 0 else PLAIN
            lines += [[Segment(part, style)] for part in wrap(sentence, max(10, width))]
        return lines + self._setting(width)

    def _table(self, width: int) -> list[Line]:
        tried = self._fit.search.tried
        if not tried:
            return []
        heading, *rows = table(tried, pools=width >= _POOLS_FROM)
        passed = [one.passed for one in from_the_largest(tried)]
        lines: list[Line] = [[Segment(fit(heading, width, self.glyphs), BOLD)]]
        for row, good in zip(rows, passed, strict=True):
            lines.append([Segment(fit(row, width, self.glyphs), GOOD if good else WARNING)])
        return lines

    def _setting(self, width: int) -> list[Line]:
        found = self._advice
        if found is None:
            return []
        lines: list[Line] = [[], [Segment(f"With a margin: {format_bytes(found.size)}. ", BOLD)]]
        lines[-1] += [Segment("[R]", KEY), Segment(" relaunches with it. Next time:")]
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
            self.dismiss(Answer.GO_ON)
        else:
            self.action_cancel()

    def action_hide(self) -> None:
        self.dismiss(None)

    def action_new(self) -> None:
        if not self._fit.going:
            self.dismiss(Answer.NEW)

    def action_relaunch(self) -> None:
        if not self._fit.going and self._advice is not None:
            self.dismiss(Answer.RELAUNCH)

    def action_copy(self) -> None:
        """By OSC 52: into the clipboard of the terminal, wherever that is."""
        if not self._fit.going and self._advice is not None:
            self.app.copy_to_clipboard("\n".join(code(self._advice)) + "\n")
            self.app.notify(COPIED, timeout=3)
