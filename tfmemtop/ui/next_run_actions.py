"""The actions of the keys that choose the settings of the next run, search for a limit, and start the run."""

from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.notebooks.origin import is_recognised_again
from tfmemtop.ui import kernel_actions as kernels
from tfmemtop.ui import refusals
from tfmemtop.ui.search_actions import SearchActions

# Each dialog is imported by the method that opens it: the first frame does not need it.


class NextRunActions(SearchActions):
    """The part of the app that chooses the settings of the next run, and starts it."""

    def _choose(self, chosen: NextRun | None) -> None:
        if chosen is not None:
            self.session.choose(chosen)
            self.of_kernel(kernels.CHOSEN)
            self.redraw()

    def _upcoming(self) -> NextRun | None:
        """Return the next run, if there is one that a choice can reach. Else, notify the user."""
        upcoming = self.session.next
        if self.session.kernel is not None and not is_recognised_again(self.session.kernel):
            self.notify(kernels.NOT_RECOGNISED)
            return None
        if upcoming is None and self.session.watches_only:
            self.notify(refusals.NOTHING_TO_SET)
        return upcoming

    def action_growth(self) -> None:
        if upcoming := self._upcoming():
            if self.session.state.devices:
                self._choose(upcoming.with_growth_cycled())
            else:
                self.notify(refusals.GROWTH_NEEDS_GPU)

    def action_allocator(self) -> None:
        if upcoming := self._upcoming():
            self._choose(upcoming.with_allocator_cycled(bool(self.session.state.devices)))

    def action_xla_report(self) -> None:
        if upcoming := self._upcoming():
            self._choose(upcoming.with_xla_report_toggled())

    def action_limit(self) -> None:
        from tfmemtop.ui.screens.next_run_dialogs import limit_dialog

        if upcoming := self._upcoming():
            fitted = self.session.fitting.suggested(upcoming)
            self.push_screen(limit_dialog(self.session.state, upcoming, fitted, self.glyphs), self._choose)

    def action_gpus(self) -> None:
        from tfmemtop.ui.screens.next_run_dialogs import gpus_dialog

        if upcoming := self._upcoming():
            if self.session.state.devices:
                self.push_screen(gpus_dialog(self.session.state, upcoming, self.glyphs), self._choose)
            else:
                self.notify(refusals.NO_GPU_TO_CHOOSE)

    def action_arguments(self) -> None:
        from tfmemtop.ui.screens.next_run_dialogs import command_line_dialog

        if not self.of_kernel(kernels.NO_COMMAND_LINE) and (upcoming := self._upcoming()):
            self.push_screen(command_line_dialog(upcoming, self.glyphs), self._choose)

    def action_relaunch(self) -> None:
        """Start the next run. If the newest run is still running, ask first."""
        from tfmemtop.ui.screens.questions import relaunch_dialog

        run, upcoming = self.session.state.run, self.session.next
        if run is None or upcoming is None:
            self.notify(refusals.NOTHING_TO_RELAUNCH)
        elif self.session.fitting.going:
            self.notify(refusals.SEARCH_GOES_ON)
        elif self.session.kernel is not None:
            self.ask_to_restart(self.session.kernel, upcoming)
        elif run.going:
            self.push_screen(relaunch_dialog(self.session.state, run, upcoming, self.glyphs), self._relaunch)
        else:
            self.session.relaunch()

    def _relaunch(self, agreed: bool | None) -> None:
        if agreed:
            self.session.relaunch()
