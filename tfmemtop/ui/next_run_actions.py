"""The keys that choose the next run's settings, search for them, and start it. Jupyter starts the runs of kernels."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.screen import ModalScreen

from tfmemtop.events.recording import RecordingError, read
from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.experiments.session.session import Session
from tfmemtop.frameworks import FrameworkName, UsedFramework
from tfmemtop.reports.settings import SCRIPTS_OWN, chosen
from tfmemtop.state import State, apply
from tfmemtop.state.lookup import without_tensorflow
from tfmemtop.state.model import RunState
from tfmemtop.ui import ScreenOutcome
from tfmemtop.ui.screen_app import ScreenApp

if TYPE_CHECKING:
    from tfmemtop.experiments.fit.plan import Plan
    from tfmemtop.experiments.fit.session import SessionFit
    from tfmemtop.ui.screens.fit_dialogs import AfterSearch

_LONG_S = 3600.0
_LOOK_S = 1.0

Successor = Callable[[str], str | None]
RecordingOf = Callable[[str], Path | None]
"""The types of ``successor`` and ``recording`` in :class:`tfmemtop.ui.UiOptions`."""

NOT_RECOGNISED = (
    "VS Code gives a kernel another name at each start, so no choice here can reach the next one. "
    "Set it for the kernelspec: tfmemtop kernel install --help."
)
NO_COMMAND_LINE = "The command line of a kernel is Jupyter's. Growth, limit, allocator and GPUs can be chosen."


def not_for(frameworks: Sequence[UsedFramework], setting: str, *, has_gpus: bool) -> str:
    """Return why the next run cannot have a *setting*, such as ``growth``; its *frameworks* are not TensorFlow."""
    names = " and ".join(framework.name.title for framework in frameworks)
    if not has_gpus:
        return f"No GPU is known here, so there is nothing to set for {names}."
    torch = next((framework for framework in frameworks if framework.name is FrameworkName.PYTORCH), None)
    if torch and setting == "growth":
        return "Not for PyTorch: its pool always grows."
    if torch and setting == "limit":
        return (
            f"Not for PyTorch {torch.version}, which takes a limit from its environment from 2.10 on. In the script: "
            "torch.cuda.set_per_process_memory_fraction(0.5)."
        )
    return f"Not for {names}: {setting} is TensorFlow's."


def restart_yourself(settings: Sequence[str]) -> str:
    """Return why a kernel is not relaunched, and which *settings* its next start has."""
    return f"Restart the kernel where the notebook is open. Its next start: {' · '.join(settings)}."


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


# Each dialog is imported by the method that opens it: the first frame does not need it.


class NextRunActions(ScreenApp):
    """The part of the app that chooses the settings of the next run, and starts it."""

    session: Session

    def redraw(self) -> None:
        """Let the screens draw the state."""
        raise NotImplementedError

    def _choose(self, chosen: NextRun | None) -> None:
        if chosen is not None:
            self.session.choose(chosen)
            self.of_kernel(
                "The setting takes effect at the kernel's next restart. Restart it where the notebook is open."
            )
            self.redraw()

    def _upcoming(self) -> NextRun | None:
        """Return the next run, if there is one that a choice can reach. Else, notify the user."""
        from tfmemtop.notebooks import is_recognised_again

        upcoming = self.session.next
        if self.session.kernel is not None and not is_recognised_again(self.session.kernel):
            self.notify(NOT_RECOGNISED)
            return None
        if upcoming is None and self.session.watches_only:
            self.notify("There is no script to set anything for: tfmemtop only watches.")
        return upcoming

    def _settable(self, setting: str) -> NextRun | None:
        """Return the next run if TensorFlow, or a framework that takes *setting*, is in it. Else, notify the user."""
        state = self.session.state
        alone, has_gpus = without_tensorflow(state), bool(state.devices)
        if alone and not (has_gpus and any(setting in one.takes for one in alone)):
            self.notify(not_for(alone, setting, has_gpus=has_gpus))
            return None
        return self._upcoming()

    def action_growth(self) -> None:
        if upcoming := self._settable("growth"):
            if self.session.state.devices:
                self._choose(upcoming.with_growth_cycled())
            else:
                self.notify("Growth is a setting for GPUs, and this machine has none. [L] limits the CPU pool.")

    def action_allocator(self) -> None:
        if upcoming := self._settable("allocator"):
            self._choose(upcoming.with_allocator_cycled(bool(self.session.state.devices)))

    def action_xla_report(self) -> None:
        if upcoming := self._settable("XLA's report"):
            self._choose(upcoming.with_xla_report_toggled())

    def action_limit(self) -> None:
        from tfmemtop.ui.screens.questions import limit_dialog

        if upcoming := self._settable("limit"):
            fitted = self.session.fitting.suggested(upcoming)
            self.push_screen(limit_dialog(self.session.state, upcoming, fitted), self._choose)

    def action_gpus(self) -> None:
        from tfmemtop.ui.screens.questions import gpus_dialog

        if upcoming := self._upcoming():
            if self.session.state.devices:
                self.push_screen(gpus_dialog(self.session.state, upcoming), self._choose)
            else:
                self.notify("This machine has no GPU to choose.")

    def action_arguments(self) -> None:
        from tfmemtop.ui.screens.questions import command_line_dialog

        if not self.of_kernel(NO_COMMAND_LINE) and (upcoming := self._upcoming()):
            self.push_screen(command_line_dialog(upcoming), self._choose)

    def action_relaunch(self) -> None:
        """Start the next run. If the newest run is still running, ask first."""
        from tfmemtop.ui.screens.questions import relaunch_dialog

        run, upcoming = self.session.state.run, self.session.next
        if run is None or upcoming is None:
            self.notify("There is no script to relaunch: tfmemtop only watches.")
        elif self.session.fitting.going:
            self.notify("A search for the smallest limit is under way. [F] shows it and can stop it.")
        elif self.session.kernel is not None:
            if upcoming := self._upcoming():
                self.notify(restart_yourself(chosen(upcoming.settings) or [SCRIPTS_OWN]))
        elif run.going:
            self.push_screen(relaunch_dialog(self.session.state, run, upcoming), self._relaunch)
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

    # The search for a limit, or for the largest batch.

    _searching = False  # whether a search goes on, as last shown to the user

    def action_fit(self) -> None:
        """Show the search if there is one, otherwise ask for one. If none is possible, notify the user why."""
        if self.of_kernel(
            "A search runs a program again and again. A kernel is started by Jupyter. [L] sets its limit."
        ):
            return
        if self.session.engine_gone:
            self.notify("The engine has gone. Nothing can be started any more.")
        elif self.session.state.run is None:
            self.notify("There is no script to find a limit for: tfmemtop only watches.")
        elif alone := without_tensorflow(self.session.state):
            self.notify(not_for(alone, "search", has_gpus=True))
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
        from tfmemtop.experiments.fit.plan import ImpossibleSearch
        from tfmemtop.experiments.fit.session import SessionFit
        from tfmemtop.ui.screens.fit_dialogs import search_dialog

        session, upcoming, run = self.session, self.session.next, self.session.state.run
        if upcoming is None:
            return

        def done(plan: "Plan | None") -> None:
            if plan is not None:
                session.fitting.begin(SessionFit(plan), upcoming, run.run if run else 0)
                self._search_begun()

        try:
            self.push_screen(search_dialog(session, upcoming), done)
        except ImpossibleSearch as error:
            self.notify(f"{error}. [A] changes it for the next run.")

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

        self.push_screen(FitDialog(search, stop=self._stop_search), done)
