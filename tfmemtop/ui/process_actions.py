"""What the user wants of a process: its details, a signal, to read it from outside; and the end of the app."""

from typing import TYPE_CHECKING

from textual import on

from tfmemtop import events
from tfmemtop.experiments.session.session import Session
from tfmemtop.ui import ScreenOutcome
from tfmemtop.ui.panels.process_table import ProcessTable
from tfmemtop.ui.screen_app import ScreenApp
from tfmemtop.ui.screens.main_screen import MainScreen

if TYPE_CHECKING:
    from tfmemtop.ui.screens.questions import Leaving

# Each dialog is imported by the method that opens it: the first frame does not need it.


class ProcessActions(ScreenApp):
    """The part of the app that carries out what the process table requests, and that ends the app."""

    session: Session
    main: MainScreen

    @on(ProcessTable.Details)
    def _details(self, message: ProcessTable.Details) -> None:
        from tfmemtop.ui.screens.details import DetailsScreen

        if self.session.watches_only and not self.session.outside:
            # If TensorFlow is in the process, it can be read from outside, and there is more to show.
            self.session.send(events.Attach(pid=message.pid, if_tensorflow=True))
        self.push_screen(DetailsScreen(self.session, message.pid))

    @on(ProcessTable.Attach)
    def _read_from_outside(self, message: ProcessTable.Attach) -> None:
        """Read a process that tfmemtop did not start; if this session cannot, notify the user how it can be done."""
        if self.session.watches_only:
            self.session.send(events.Attach(pid=message.pid))
        elif self.session.connected:
            command = f"tfmemtop attach {message.pid}"
            self.notify(f"This session has a script of its own. In another terminal: {command}")
        else:
            self.notify("Only a live screen can read a process.")

    @on(ProcessTable.Signal)
    def _signal(self, message: ProcessTable.Signal) -> None:
        """Ask which signal to send to a process, or to all tagged ones."""
        from tfmemtop.ui.screens.questions import SignalScreen

        if not self.session.may_change:
            self.notify(self.session.why_unchangeable)
            return
        known = self.session.state.processes
        names = [" ".join(known[pid].seen.command) if pid in known else "" for pid in message.pids]

        def done(number: int | None) -> None:
            if number is not None:
                self.session.send(events.Signal(pids=message.pids, signal=number))

        self.push_screen(SignalScreen(message.pids, names), done)

    # The end of the app.

    def action_leave(self) -> None:
        """Quit. If a script of this session runs, first ask whether to stop it or to leave it running."""
        from tfmemtop.ui.screens.questions import leave_dialog

        session, run = self.session, self.session.state.run
        if not session.connected:
            self.exit(ScreenOutcome(session.exit_code))
        elif session.outside:
            # Its engine ends with its last screen, and the process goes on.
            self.session.send(events.Leave())
            self.exit(ScreenOutcome(0))
        elif session.readonly:
            self.exit(ScreenOutcome(session.exit_code, left_running=bool(run and run.going)))
        elif run is None or not run.going:
            session.stop()
        elif session.kernel is not None:
            session.send(events.Leave())
            self.exit(ScreenOutcome(0, left_running=True))
        else:
            self.push_screen(leave_dialog(session.state), self._leave)

    def _leave(self, choice: "Leaving | None") -> None:
        from tfmemtop.ui.screens.questions import Leaving

        session = self.session
        if choice is Leaving.LEAVE and session.script_goes_on:
            session.send(events.Leave())
            self.exit(ScreenOutcome(0, left_running=True))
        elif choice in (Leaving.LEAVE, Leaving.STOP):  # the run, or the engine, may have ended behind the dialog
            if session.connected:
                session.stop()
            else:
                self.exit(ScreenOutcome(session.exit_code))

    async def action_quit(self) -> None:
        """Handle Ctrl-Q, which Textual binds with priority: quit, or, while the user types, send it to the script."""
        if self.main.output.typing:
            self.session.send(events.Input(text="\x11"))
        else:
            self.action_leave()

    def action_help_quit(self) -> None:
        """Handle Ctrl-C: quit. Textual would only show a hint."""
        self.action_leave()
