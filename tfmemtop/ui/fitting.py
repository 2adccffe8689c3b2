"""The app's hand on a search for the smallest limit: asks what for, makes its tries, shows what it found."""

from typing import TYPE_CHECKING

from textual.screen import ModalScreen

from tfmemtop import events
from tfmemtop.fit.plan import SECONDS, TRIES, Plan, make_plan, parse_goal
from tfmemtop.fit.session import SessionFit
from tfmemtop.fit.watch import Goal
from tfmemtop.state.model import RunState
from tfmemtop.state.steps import pace
from tfmemtop.ui.dialog import Suggestion
from tfmemtop.ui.fit_dialogs import Answer, Asked, AskFit, FitDialog
from tfmemtop.ui.next_run import NextRun, whole_memory

if TYPE_CHECKING:
    from tfmemtop.ui.app import TfmemtopApp


class Fitting:
    """At most one search at a time; the last one's result stays until the next."""

    def __init__(self, app: "TfmemtopApp") -> None:
        self._app = app
        self.search: SessionFit | None = None
        """The newest search, or the one that goes on."""
        self._before: NextRun | None = None  # what R would have started

    @property
    def going(self) -> bool:
        """Whether tries are being made."""
        return self.search is not None and self.search.going

    @property
    def mark(self) -> str:
        """How far the search is, for the header; empty if none goes on."""
        search = self.search
        return f"FIT try {search.number} of {search.plan.tries}" if search and search.going else ""

    def pressed(self) -> None:
        """F: ask for a search, or show the one there is."""
        app = self._app
        if app.replay:
            app.notify("A replay starts nothing. On the live screen F finds the smallest limit that works.")
        elif app.options.readonly:
            app.notify("F would start the script again; this screen is read-only.")
        elif app.engine_gone:
            app.notify("The engine has gone: nothing can be started any more.")
        elif app.state.run is None:
            app.notify("There is no script to find a limit for: tfmemtop only watches.")
        elif self.search is not None:
            self._show(self.search)
        else:
            self._ask()

    def take(self, event: events.AnyEvent) -> None:
        """The session's next event, already in the state."""
        search = self.search
        if search is None or not search.going:
            return
        for command in search.take(event):
            self._app.send(command)
        if not search.going:
            self._over(search)

    def engine_went(self) -> None:
        """Nothing can be tried any more."""
        if self.search and self.search.going:
            self.search.stop("the engine has gone")

    def _ask(self) -> None:
        app, upcoming = self._app, self._app.steering.next
        assert upcoming is not None
        try:
            plan = self._plan(upcoming, Goal(SECONDS), TRIES)
        except ValueError as error:
            app.notify(f"{error}. [A] changes it for the next run.")
            return
        run = app.state.run
        asked = Asked(
            running=f"Run {run.run}" if run and run.going else "",
            of="each GPU" if plan.on_gpu else "the CPU pool",
            growth=plan.settings.growth if plan.on_gpu else None,
        )

        def done(text: str | None) -> None:
            if text is not None:
                self._begin(upcoming, *parse_goal(text))

        usual = f"{SECONDS:g} s, {TRIES} tries"
        suggestions = _suggestions(usual, run, app.state.now)
        app.push_screen(AskFit(asked, value=usual, suggestions=suggestions, glyphs=app.glyphs), done)

    def _plan(self, upcoming: NextRun, goal: Goal, tries: int) -> Plan:
        state = self._app.state
        return make_plan(
            list(upcoming.argv),
            upcoming.settings,
            has_gpus=bool(state.devices),
            host_memory=state.session.host_memory if state.session else 0,
            goal=goal,
            tries=tries,
            ceiling=whole_memory(state, upcoming.settings),
        )

    def _begin(self, upcoming: NextRun, goal: Goal, tries: int) -> None:
        self._before = upcoming
        self.search = SessionFit(self._plan(upcoming, goal, tries))
        self._go_on(self.search)

    def _go_on(self, search: SessionFit) -> None:
        run = self._app.state.run
        for command in search.begin(run.run if run else 0):
            self._app.send(command)
        self._app.redraw()
        self._show(search)

    def _stop(self) -> None:
        if self.search and self.search.going:
            self.search.stop()
            self._over(self.search)

    def _over(self, search: SessionFit) -> None:
        """The search has ended: the next run is again as the user had it, and what was found is shown."""
        app = self._app
        if self._before is not None:
            app.steering.choose(self._before)
        if any(isinstance(screen, FitDialog) for screen in app.screen_stack):
            app.redraw()
        elif any(isinstance(screen, ModalScreen) for screen in app.screen_stack):
            app.notify("The search for the smallest limit is over; [F] shows what it found.")
        else:
            self._show(search)

    def _show(self, search: SessionFit) -> None:
        app = self._app

        def done(answer: Answer | None) -> None:
            if answer == "go on":
                self._go_on(search)
            elif answer == "new":
                self._ask()
            elif answer == "relaunch" and (limit := search.search.advice) is not None:
                app.steering.choose(NextRun(tuple(search.plan.command), search.plan.settings_of(limit)))
                app.steering.ask_relaunch()

        app.push_screen(FitDialog(search, stop=self._stop, glyphs=app.glyphs), done)


def _suggestions(usual: str, run: RunState | None, now: float) -> list[Suggestion]:
    found = [(usual, "what is usual"), (f"2 min, {TRIES} tries", "where memory still grows after half a minute")]
    steps = pace(run.steps, now) if run and run.steps else None
    if steps and steps.whole and (count := round(steps.whole * SECONDS, -1)) >= 10:
        found.append((f"{count:.0f} steps, {TRIES} tries", f"about what this script makes in {SECONDS:g} s"))
    else:
        found.append((f"200 steps, {TRIES} tries", "of its busiest tf.function, or of Keras"))
    return found
