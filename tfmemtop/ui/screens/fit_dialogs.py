"""F: the dialogs of a search: what to search for, its progress, and what it has found."""

import shlex
from collections.abc import Callable, Sequence
from enum import Enum
from typing import ClassVar

import msgspec
from rich.segment import Segment
from textual.binding import Binding, BindingType

from tfmemtop.experiments.fit.largest import places
from tfmemtop.experiments.fit.plan import SECONDS, TRIES, ImpossibleSearch, Plan, Sought, parse_sought
from tfmemtop.experiments.fit.session import SessionFit
from tfmemtop.experiments.fit.text import conclusion, goal_text, table, trial_words
from tfmemtop.experiments.session.next_run import NextRun, whole_memory
from tfmemtop.experiments.session.session import Session
from tfmemtop.findings.proposed_limit import IN_THE_SCRIPT, code, command_line
from tfmemtop.state import State
from tfmemtop.state.steps import pace
from tfmemtop.ui.draw.glyphs import RUNNING
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, DIM, GOOD, KEY, PLAIN, WARNING
from tfmemtop.ui.draw.text import chop, wrap
from tfmemtop.ui.screens.choice_dialog import InputDialog
from tfmemtop.ui.screens.dialog import COPY_LINES, Hint, PageDialog
from tfmemtop.ui.screens.questions import whose_limit
from tfmemtop.units import counted, format_bytes

_WORTH_COUNTING = 10  # steps


def search_dialog(session: Session, upcoming: NextRun) -> InputDialog[Plan]:
    """Return the dialog that asks what to search for under the settings of *upcoming*.

    Raises:
        ImpossibleSearch: a search would find nothing under these settings.
    """
    plan, run = _plan_for(session.state, upcoming, Sought()), session.state.run
    steps = pace(run.steps, session.state.now) if run and run.steps else None
    found = _suggestions(SECONDS, TRIES, steps.whole if steps else None, places(upcoming.argv))
    ends = f"run {run.run}" if run and run.going else ""
    return InputDialog(
        "Find the smallest memory limit that works, or the largest batch",
        text=_what_is_done(whose_limit(plan.on_gpu), plan.growth, ends.capitalize()),
        value=found[0][0],
        read=lambda text: _plan_for(session.state, upcoming, parse_sought(text)),
        takes=f"end {ends} and begin" if ends else "begin",
        suggestions=found,
        width=84,
    )


def _plan_for(state: State, upcoming: NextRun, sought: Sought) -> Plan:
    """Return the plan of a search for *sought*, with the command and the settings of *upcoming*.

    Raises:
        ImpossibleSearch: a limit would have no effect under these settings; or the largest value of a number is
            sought, and the command has no place for it, or the machine has no GPU and the CPU's pool has no limit.
    """
    session, settings, wanted = state.session, upcoming.settings, sought.wanted
    limit = None
    if wanted is not None:
        if not wanted.is_in(upcoming.argv):
            raise ImpossibleSearch(f"the command has no {{{wanted.name}}}: press [E] and put it in place of the value")
        limit = settings.limit(has_gpus=bool(state.devices))
        if limit is None and not state.devices:
            raise ImpossibleSearch("the search needs a memory limit, and the next run has none: [L] sets one")
    return Plan(
        command=list(upcoming.argv),
        # A search makes many runs, and the contents of their XLA buffers are shown nowhere.
        settings=msgspec.structs.replace(settings, xla_report=False),
        has_gpus=bool(state.devices),
        host_memory=session.host_memory if session else 0,
        goal=sought.goal,
        tries=sought.tries,
        largest=limit,
        ceiling=whole_memory(state, settings),
        wanted=wanted,
    )


def _what_is_done(of: str, growth: str | None, running: str) -> list[str]:
    """Return what a search does, for the user to read before it begins.

    *of* is what is limited; *running* describes the run that has to end first, empty if there is none.
    """
    with_growth = f" and growth {growth}" if growth else ""
    what = (
        f"The script is started again and again, each time with another limit for {of}{with_growth}; the first time "
        "without one. Each try is ended as soon as it has got far enough or has failed. The last one is ended too: "
        "then nothing runs until you relaunch."
    )
    largest = (
        "To find the largest batch under the next run's limit, put {batch} in its place in the command with [E], and "
        "type a range here, such as batch=1..4096, 5 steps."
    )
    goal = "How far it has to get, counted from TensorFlow's first allocation, and in how many tries:"
    return [what, largest, *([f"{running} is ended first."] if running else []), goal]


def _suggestions(
    seconds: float, tries: int, steps_per_s: float | None, places: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Return goals to choose from: the text to type, and what it means.

    *seconds* and *tries* are the usual ones. *steps_per_s* is the script's pace, ``None`` if it is not known. *places*
    are the names in braces in the command.
    """
    found = [(f"{name}=1..4096, 5 steps", f"the largest {name} that passes") for name in places]
    found += [
        (f"{seconds:g} s, {tries} tries", "what is usual"),
        (f"2 min, {tries} tries", "if memory still grows after half a minute"),
    ]
    count = round((steps_per_s or 0) * seconds, -1)
    if count >= _WORTH_COUNTING:
        found.append((f"{count:.0f} steps, {tries} tries", f"about what this script makes in {seconds:g} s"))
    else:
        found.append((f"200 steps, {tries} tries", "of its busiest tf.function, or of Keras"))
    return found


class FoundValue(msgspec.Struct, frozen=True, dict=True):
    """What a search has found: in ``words``, as the next run, and how to have it the next time.

    ``code`` are the lines that set it in the script; none for a value in the command.
    """

    words: str
    upcoming: NextRun
    margin: str
    command: str
    code: Sequence[str] = ()


def found_by(search: SessionFit) -> FoundValue | None:
    """Return what the search has found; ``None`` if nothing, or not yet."""
    plan, found = search.plan, search.search.found
    if plan.wanted is not None and found is not None:
        argv = plan.argv(found)
        upcoming = NextRun(tuple(argv), plan.settings_of(plan.largest))
        return FoundValue(f"{plan.wanted.name}={found}", upcoming, "", shlex.join(argv))
    limit = plan.suggested(search.search)
    if limit is None:
        return None
    size, upcoming = format_bytes(limit.size), NextRun(tuple(plan.command), plan.settings_of(limit.size))
    return FoundValue(size, upcoming, f"With a margin: {size}. ", command_line(limit, plan.command), code(limit))


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

    def __init__(self, search: SessionFit, *, stop: Callable[[], None]) -> None:
        what = "smallest memory limit" if search.plan.wanted is None else "largest value"
        super().__init__(f"The {what} that works", width=124)
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
        lines: list[Line] = [[Segment(fit(goal, width), DIM)], []]
        rows = table(search.search, pools=width >= _POOLS_FROM)
        for index, row in enumerate(rows):
            style = BOLD if index == 0 else GOOD if row.passed else WARNING
            lines.append([Segment(fit(row.text, width), style)])
        if search.going:
            trial = trial_words(search.trial, wanted)
            mark = f"{RUNNING} try {search.number} of {tries}: {trial}  "
            lines.append([Segment(mark, KEY), Segment(fit(search.progress, width - len(mark)))])
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
