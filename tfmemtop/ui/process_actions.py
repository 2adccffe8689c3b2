"""What the user wants of a process in the table: its details, a signal, or that it is read from outside."""

from textual import on

from tfmemtop import events
from tfmemtop.experiments.session.session import Session
from tfmemtop.ui import refusals
from tfmemtop.ui.panels.process_table import ProcessTable
from tfmemtop.ui.screen_app import ScreenApp

# Each dialog is imported by the method that opens it: the first frame does not need it.


class ProcessActions(ScreenApp):
    """The part of the app that carries out what the process table requests."""

    session: Session

    @on(ProcessTable.Details)
    def _details(self, message: ProcessTable.Details) -> None:
        from tfmemtop.ui.screens.details import DetailsScreen

        if self.session.watches_only and not self.session.outside:
            # If TensorFlow is in the process, it can be read from outside, and there is more to show.
            self.session.send(events.Attach(pid=message.pid, if_tensorflow=True))
        self.push_screen(DetailsScreen(self.session, message.pid, glyphs=self.glyphs))

    @on(ProcessTable.Attach)
    def _read_from_outside(self, message: ProcessTable.Attach) -> None:
        """Read a process that tfmemtop did not start; if this session cannot, notify the user how it can be done."""
        if self.session.watches_only:
            self.session.send(events.Attach(pid=message.pid))
        else:
            self.notify(refusals.no_attach(message.pid, live=self.session.connected))

    @on(ProcessTable.Signal)
    def _signal(self, message: ProcessTable.Signal) -> None:
        """Ask which signal to send to a process, or to all tagged ones."""
        from tfmemtop.ui.screens.questions import SignalScreen

        if not self.session.may_change:
            self.notify(refusals.no_change(replay=self.session.replay is not None, outside=self.session.outside))
            return
        known = self.session.state.processes
        names = [" ".join(known[pid].seen.command) if pid in known else "" for pid in message.pids]

        def done(number: int | None) -> None:
            if number is not None:
                self.session.send(events.Signal(pids=message.pids, signal=number))

        self.push_screen(SignalScreen(message.pids, names, glyphs=self.glyphs), done)
