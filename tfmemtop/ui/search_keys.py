"""The key F: asks what to search for, shows the progress of the search, and its result."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.screen import ModalScreen

from tfmemtop.experiments.fit.largest import places
from tfmemtop.experiments.fit.plan import SECONDS, TRIES, ImpossibleSearch, Sought, parse_sought
from tfmemtop.experiments.fit.session import SessionFit
from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.experiments.session.session import Session
from tfmemtop.state.model import RunState
from tfmemtop.state.steps import pace
from tfmemtop.ui import refusals
from tfmemtop.ui.base_app import BaseApp
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.screens.drawn import Changed
from tfmemtop.ui.screens.fit_text import OVER, suggestions

if TYPE_CHECKING:
    from tfmemtop.ui.screens.dialog import Suggestion
    from tfmemtop.ui.screens.fit_dialogs import AfterSearch


class SearchKeys:
    """The dialogs of a search, on the app's screen."""

    def __init__(self, app: BaseApp, session: Session, *, glyphs: Glyphs, relaunch: Callable[[], None]) -> None:
        """Prepare the dialogs. *relaunch* starts the next run, after asking if a running script may be ended for it."""
        self._app = app
        self._session = session
        self._glyphs = glyphs
        self._relaunch = relaunch
        self._going = False  # whether a search goes on, as last shown to the user

    def pressed(self) -> None:
        """Show the search if there is one, otherwise ask for one. If none is possible, notify the user why."""
        if refusal := self._refusal():
            self._app.notify(refusal)
        elif self._session.fitting.search is not None:
            self._show(self._session.fitting.search)
        else:
            self._ask()

    def look(self) -> None:
        """Show the result, if the search has ended since the last call."""
        fitting = self._session.fitting
        over, self._going = self._going and not fitting.going, fitting.going
        if not over or fitting.search is None:
            return
        from tfmemtop.ui.screens.fit_dialogs import FitDialog

        stack = self._app.screen_stack
        if any(isinstance(screen, FitDialog) for screen in stack):
            self._app.post_message(Changed())
        elif any(isinstance(screen, ModalScreen) for screen in stack):
            self._app.notify(OVER)
        else:
            self._show(fitting.search)

    def _refusal(self) -> str:
        """Return the reason why the key has no effect; empty if it has one."""
        session = self._session
        if session.engine_gone:
            return refusals.FIT_WITHOUT_ENGINE
        return refusals.FIT_WITHOUT_SCRIPT if session.state.run is None else ""

    def _ask(self) -> None:
        from tfmemtop.ui.screens.fit_dialogs import Asked, AskFit
        from tfmemtop.ui.screens.next_run_dialogs import whose_limit

        session, upcoming, run = self._session, self._session.next, self._session.state.run
        if upcoming is None:
            return
        try:
            plan = session.plan(upcoming, Sought())
        except ImpossibleSearch as error:
            self._app.notify(refusals.fit_impossible(str(error)))
            return
        asked = Asked(
            running=f"Run {run.run}" if run and run.going else "",
            of=whose_limit(plan.on_gpu),
            growth=plan.settings.growth if plan.on_gpu else None,
        )

        def read(text: str) -> Sought:
            sought = parse_sought(text)
            session.plan(upcoming, sought)  # raises if this search is not possible
            return sought

        def done(answer: Sought | None) -> None:
            if answer is not None:
                session.fitting.begin(session.plan(upcoming, answer), upcoming, run.run if run else 0)
                self._begun()

        found = _suggestions(run, session.state.now, upcoming)
        dialog = AskFit(asked, read=read, value=found[0][0], suggestions=found, glyphs=self._glyphs)
        self._app.push_screen(dialog, done)

    def _begun(self) -> None:
        self._going = True
        if search := self._session.fitting.search:
            self._app.post_message(Changed())
            self._show(search)

    def _stop(self) -> None:
        self._session.fitting.stop()
        self.look()

    def _show(self, search: SessionFit) -> None:
        from tfmemtop.ui.screens.fit_dialogs import AfterSearch, FitDialog

        session = self._session

        def done(answer: "AfterSearch | None") -> None:
            if answer is AfterSearch.GO_ON:
                session.fitting.go_on(session.state.run.run if session.state.run else 0)
                self._begun()
            elif answer is AfterSearch.NEW:
                self._ask()
            elif answer is AfterSearch.RELAUNCH and (found := _found(search)) is not None:
                session.choose(found)
                self._relaunch()

        self._app.push_screen(FitDialog(search, stop=self._stop, glyphs=self._glyphs), done)


def _found(search: SessionFit) -> NextRun | None:
    """Return the next run with what the search has found; ``None`` if it has found nothing."""
    plan = search.plan
    if plan.wanted is not None:
        return NextRun(tuple(plan.argv(search.search.found)), plan.settings_of(plan.largest))
    found = plan.suggested(search.search)
    return None if found is None else NextRun(tuple(plan.command), plan.settings_of(found.size))


def _suggestions(run: RunState | None, now: float, upcoming: NextRun) -> "list[Suggestion]":
    steps = pace(run.steps, now) if run and run.steps else None
    return suggestions(SECONDS, TRIES, steps.whole if steps else None, places(upcoming.argv))
