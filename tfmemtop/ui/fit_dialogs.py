"""F: what to search for, how the search gets on, and what it has found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.segment import Segment
from textual.binding import Binding, BindingType

from tfmemtop.fit.plan import goal_words, parse_goal
from tfmemtop.fit.report import code, command_line, conclusion, from_the_largest, limit_words, table, where
from tfmemtop.fit.session import SessionFit
from tfmemtop.state import State
from tfmemtop.ui.dialog import Dialog, Hint, InputDialog, Suggestion
from tfmemtop.ui.lines import Line, fit
from tfmemtop.ui.palette import BOLD, DIM, GOOD, KEY, PLAIN, UNICODE, WARNING, Glyphs
from tfmemtop.ui.text import chop, wrap
from tfmemtop.units import format_bytes

Answer = Literal["go on", "new", "relaunch"]
"""What the user wants once the search is over or has been stopped."""


_POOLS_FROM = 84
"""Cells from which on the table has room for how large the pool became."""


@dataclass(frozen=True)
class Asked:
    """What is told before anything is done: what ends for it, and whose limit is sought."""

    running: str  # the run that would be ended, empty if none
    of: str  # "each GPU", "the CPU pool"
    growth: str | None


class AskFit(InputDialog):
    """How far the script is to get, and in how many tries; Enter begins."""

    def __init__(self, asked: Asked, *, value: str, suggestions: Sequence[Suggestion], glyphs: Glyphs) -> None:
        whose = f"The script is started again and again, each time with another limit for {asked.of}"
        growth = f" and growth {asked.growth}" if asked.growth else ""
        text = [
            f"{whose}{growth}; the first time without one. Each try is ended as soon as it has got far enough or has "
            "failed. The last one is ended too: then nothing runs until you relaunch.",
            f"{asked.running} is ended first." if asked.running else "",
            "How far it has to get, counted from TensorFlow's first use of memory, and in how many tries:",
        ]
        super().__init__(
            "Find the smallest memory limit that works",
            text=[part for part in text if part],
            value=value,
            check=_wrong,
            suggestions=suggestions,
            glyphs=glyphs,
            width=84,
        )
        self._ends = asked.running

    def hints(self) -> list[Hint]:
        begin = f"end {self._ends[:1].lower()}{self._ends[1:]} and begin" if self._ends else "begin"
        (_, *others) = super().hints()
        return [("Enter", begin), *others]


def _wrong(text: str) -> str | None:
    try:
        parse_goal(text)
    except ValueError as error:
        return str(error)
    return None


class FitDialog(Dialog[Answer]):
    """The search as it stands: its tries, the one under way; at the end what was found and how to set it.

    While it goes, Esc and F stop it, and Enter only closes this box.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "hide", show=False),
        Binding("F", "same_key", show=False),
        Binding("N", "answer('new')", show=False),
        Binding("R", "answer('relaunch')", show=False),
        Binding("y", "copy", show=False),
    ]

    def __init__(self, search: SessionFit, *, stop: Callable[[], None], glyphs: Glyphs = UNICODE) -> None:
        super().__init__("The smallest memory limit that works", glyphs=glyphs, width=124)
        self._fit = search
        self._end_it = stop

    def refresh_state(self, state: State) -> None:
        """Draw anew, as the search goes on."""
        self.redraw()

    def hints(self) -> list[Hint]:
        search = self._fit
        if search.going:
            return [("F Esc", "stop, leave the run going"), ("Enter", "hide this, go on")]
        hints: list[Hint] = []
        if self._advice is not None:
            hints += [("R", f"relaunch with {format_bytes(self._advice)}"), ("y", "copy the lines")]
        if search.can_go_on:
            hints.append(("F", "go on with the search"))
        return [*hints, ("N", "new search"), ("Esc", "close")]

    @property
    def _advice(self) -> int | None:
        return self._fit.search.advice if self._fit.search.tried else None

    def body(self, width: int) -> list[Line]:
        search, plan = self._fit, self._fit.plan
        tries = "1 try" if plan.tries == 1 else f"{plan.tries} tries"
        goal = f"Past {goal_words(plan.goal)}, in at most {tries}"
        lines: list[Line] = [[Segment(fit(f"{goal}: {' '.join(plan.command)}", width, self.glyphs), DIM)], []]
        lines += self._table(width)
        if search.going:
            mark = f"{self.glyphs.running} try {search.number} of {plan.tries}: {limit_words(search.limit)}  "
            lines.append([Segment(mark, KEY), Segment(fit(search.progress, width - len(mark), self.glyphs))])
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
        limit = self._advice
        if limit is None:
            return []
        plan = self._fit.plan
        lines: list[Line] = [[], [Segment(f"With a margin: {format_bytes(limit)}. ", BOLD)]]
        lines[-1] += [Segment("[R]", KEY), Segment(" relaunches with it. Another time:")]
        option = "--cpu-pool" if plan.settings.gpus == () else "--memory-limit"
        growth = plan.settings.growth if plan.on_gpu else None
        started = command_line(limit, option=option, growth=growth, command=plan.command)
        lines += [[Segment("  " + part, GOOD)] for part in chop(started, max(10, width - 2), "  ")]
        lines += [[Segment(part)] for part in wrap(" ".join(where(on_gpu=plan.on_gpu)), max(10, width))]
        return lines + [
            [Segment("  " + part, GOOD)]
            for line in code(limit, on_gpu=plan.on_gpu)
            for part in chop(line, max(10, width - 2))
        ]

    def action_cancel(self) -> None:
        if self._fit.going:
            self._end_it()
            self.redraw()
        else:
            self.dismiss(None)

    def action_same_key(self) -> None:
        if self._fit.can_go_on:
            self.dismiss("go on")
        else:
            self.action_cancel()

    def action_hide(self) -> None:
        self.dismiss(None)

    def action_answer(self, answer: Answer) -> None:
        if not self._fit.going and (answer != "relaunch" or self._advice is not None):
            self.dismiss(answer)

    def action_copy(self) -> None:
        """By OSC 52: into the clipboard of the terminal, wherever that is."""
        if not self._fit.going and self._advice is not None:
            self.app.copy_to_clipboard("\n".join(code(self._advice, on_gpu=self._fit.plan.on_gpu)) + "\n")
            self.app.notify("Copied, if the terminal lets programs set the clipboard.", timeout=3)
