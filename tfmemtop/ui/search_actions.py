"""The key F: asks what to search for, shows the progress of the search, and its result."""

from typing import TYPE_CHECKING

from textual.screen import ModalScreen

from tfmemtop.experiments.fit.plan import ImpossibleSearch
from tfmemtop.ui import refusals
from tfmemtop.ui.next_run_actions import NextRunActions

if TYPE_CHECKING:
    from tfmemtop.experiments.fit.plan import Sought
    from tfmemtop.experiments.fit.session import SessionFit
    from tfmemtop.ui.screens.fit_dialogs import AfterSearch

# Each dialog is imported by the method that opens it: the first frame does not need it.


class SearchActions(NextRunActions):
    """The part of the app that searches for a limit or for the largest batch."""

    _searching = False  # whether a search goes on, as last shown to the user

    def action_fit(self) -> None:
        """Show the search if there is one, otherwise ask for one. If none is possible, notify the user why."""
        if self.of_kernel(refusals.NO_SEARCH):
            return
        if self.session.engine_gone:
            self.notify(refusals.FIT_WITHOUT_ENGINE)
        elif self.session.state.run is None:
            self.notify(refusals.FIT_WITHOUT_SCRIPT)
        elif self.session.fitting.search is not None:
            self._show_search(self.session.fitting.search)
        else:
            self._ask_for_search()

    def follow_search(self) -> None:
        """Show the result, if the search has ended since the last call."""
        fitting = self.session.fitting
        over, self._searching = self._searching and not fitting.going, fitting.going
        if not over or fitting.search is None:
            return
        from tfmemtop.ui.screens.fit_dialogs import FitDialog

        if any(isinstance(screen, FitDialog) for screen in self.screen_stack):
            self.redraw()
        elif any(isinstance(screen, ModalScreen) for screen in self.screen_stack):
            self.notify("The search is over. [F] shows what it found.")
        else:
            self._show_search(fitting.search)

    def _ask_for_search(self) -> None:
        from tfmemtop.ui.screens.fit_dialogs import search_dialog

        session, upcoming, run = self.session, self.session.next, self.session.state.run
        if upcoming is None:
            return

        def done(answer: "Sought | None") -> None:
            if answer is not None:
                session.fitting.begin(session.plan(upcoming, answer), upcoming, run.run if run else 0)
                self._search_begun()

        try:
            self.push_screen(search_dialog(session, upcoming, self.glyphs), done)
        except ImpossibleSearch as error:
            self.notify(refusals.fit_impossible(str(error)))

    def _search_begun(self) -> None:
        self._searching = True
        if search := self.session.fitting.search:
            self.redraw()
            self._show_search(search)

    def _stop_search(self) -> None:
        self.session.fitting.stop()
        self.follow_search()

    def _show_search(self, search: "SessionFit") -> None:
        from tfmemtop.ui.screens.fit_dialogs import AfterSearch, FitDialog, found_by

        session = self.session

        def done(answer: "AfterSearch | None") -> None:
            if answer is AfterSearch.GO_ON:
                session.fitting.go_on(session.state.run.run if session.state.run else 0)
                self._search_begun()
            elif answer is AfterSearch.NEW:
                self._ask_for_search()
            elif answer is AfterSearch.RELAUNCH and (found := found_by(search)) is not None:
                session.choose(found.upcoming)
                self.action_relaunch()

        self.push_screen(FitDialog(search, stop=self._stop_search, glyphs=self.glyphs), done)
