"""What the keys do that choose the settings of the next run."""

from tfmemtop.notebooks.origin import starts_are_told_apart
from tfmemtop.session.next_run import NextRun
from tfmemtop.ui.kernel_actions import KernelActions
from tfmemtop.words import kernels, refusals

# The dialogs are imported by what opens them: the first picture does without them.


class NextRunActions(KernelActions):
    """A part of the app."""

    def _choose(self, chosen: NextRun | None) -> None:
        if chosen is not None:
            self.session.choose(chosen)
            if (kernel := self.session.kernel) is not None:
                self.notify(kernels.chosen(apart=starts_are_told_apart(kernel)))
            self.redraw()

    def action_growth(self) -> None:
        if not self.session.state.devices:
            self.notify(refusals.GROWTH_NEEDS_GPU)
        elif upcoming := self.session.next:
            self._choose(upcoming.with_growth_cycled())

    def action_allocator(self) -> None:
        if upcoming := self.session.next:
            self._choose(upcoming.with_allocator_cycled(bool(self.session.state.devices)))

    def action_xla_report(self) -> None:
        if upcoming := self.session.next:
            self._choose(upcoming.with_xla_report_toggled())

    def action_limit(self) -> None:
        from tfmemtop.ui.screens.next_run_dialogs import limit_dialog

        if upcoming := self.session.next:
            fitted = self.session.fitting.suggested(upcoming)
            self.push_screen(limit_dialog(self.session.state, upcoming, fitted, self.glyphs), self._choose)

    def action_gpus(self) -> None:
        from tfmemtop.ui.screens.next_run_dialogs import gpus_dialog

        if not self.session.state.devices:
            self.notify(refusals.NO_GPU_TO_CHOOSE)
        elif upcoming := self.session.next:
            self.push_screen(gpus_dialog(self.session.state, upcoming, self.glyphs), self._choose)

    def action_arguments(self) -> None:
        from tfmemtop.ui.screens.next_run_dialogs import command_line_dialog

        if not self.of_kernel(kernels.NO_COMMAND_LINE) and (upcoming := self.session.next):
            self.push_screen(command_line_dialog(upcoming, self.glyphs), self._choose)
