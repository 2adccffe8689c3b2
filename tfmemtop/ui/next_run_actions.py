"""The actions of the keys that choose the settings of the next run and start it. Jupyter starts the runs of kernels."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from tfmemtop.events.recording import RecordingError, read
from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.experiments.session.session import Session
from tfmemtop.notebooks.origin import is_recognised_again
from tfmemtop.options import ScreenOutcome
from tfmemtop.reports.settings import SCRIPTS_OWN, chosen
from tfmemtop.state import State, apply
from tfmemtop.state.model import RunState
from tfmemtop.ui import refusals
from tfmemtop.ui.screen_app import ScreenApp

_LONG_S = 3600.0
_LOOK_S = 1.0

Successor = Callable[[str], str | None]
RecordingOf = Callable[[str], Path | None]
"""The types of ``successor`` and ``recording`` in :class:`tfmemtop.options.UiOptions`."""

# Each dialog is imported by the method that opens it: the first frame does not need it.


def run_in(path: Path) -> RunState | None:
    """Return the last run in the recording of a session that is over.

    The result is ``None`` if the recording cannot be read or contains no run. From a recording of more than an hour,
    only the lowest and the highest readings of every ten seconds are used.
    """
    state = State()
    try:
        recording = read(path)
        end = recording.duration()
        for event in recording.outline(end, end) if end > _LONG_S else recording.events():
            apply(state, event)
    except RecordingError:
        return None
    run = state.run
    if run is not None and run.ended is None:
        run.ended = state.now  # the kernel was started again, so this run has ended; its end was not recorded
    return run


class NextRunActions(ScreenApp):
    """The part of the app that chooses the settings of the next run, and starts it."""

    session: Session

    def redraw(self) -> None:
        """Let the screens draw the state."""
        raise NotImplementedError

    def _choose(self, chosen: NextRun | None) -> None:
        if chosen is not None:
            self.session.choose(chosen)
            self.of_kernel(refusals.AFTER_RESTART)
            self.redraw()

    def _upcoming(self) -> NextRun | None:
        """Return the next run, if there is one that a choice can reach. Else, notify the user."""
        upcoming = self.session.next
        if self.session.kernel is not None and not is_recognised_again(self.session.kernel):
            self.notify(refusals.NOT_RECOGNISED)
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

        if not self.of_kernel(refusals.NO_COMMAND_LINE) and (upcoming := self._upcoming()):
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
            if upcoming := self._upcoming():
                self.notify(refusals.restart_yourself(chosen(upcoming.settings) or [SCRIPTS_OWN]))
        elif run.going:
            self.push_screen(relaunch_dialog(self.session.state, run, upcoming, self.glyphs), self._relaunch)
        else:
            self.session.relaunch()

    def _relaunch(self, agreed: bool | None) -> None:
        if agreed:
            self.session.relaunch()

    # Jupyter's kernels.

    def of_kernel(self, told: str) -> bool:
        """Return whether the newest run is a kernel. If it is, notify the user with the text *told*."""
        if self.session.kernel is not None:
            self.notify(told)
        return self.session.kernel is not None

    def follow_restarts(self, successor: Successor) -> None:
        """After the kernel has ended, look every second for the session of its next start, and exit to show it."""

        async def look() -> None:
            state: State = self.session.state
            run, session = state.run, state.session
            if run is None or session is None or run.kernel is None or run.ended is None:
                return
            found = await asyncio.to_thread(successor, session.id)
            if found is not None:
                self.exit(ScreenOutcome(0, follow=found))

        self.set_interval(_LOOK_S, look)

    def find_earlier(self, recording: RecordingOf) -> None:
        """Read those recordings of the kernel's earlier starts that have not been read yet."""

        async def find() -> None:
            run = self.session.state.run
            for session in run.earlier if run is not None else ():
                path = recording(session)
                if session in self.session.earlier or path is None:
                    continue
                if (found := await asyncio.to_thread(run_in, path)) is not None:
                    self.session.earlier[session] = found
                    self.redraw()

        self.run_worker(find(), group="earlier", exclusive=True)
