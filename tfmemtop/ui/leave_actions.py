"""The end of the app: the keys that quit, the question what becomes of the script, and signals."""

from typing import TYPE_CHECKING

from tfmemtop import events
from tfmemtop.exit_codes import SIGNALLED
from tfmemtop.experiments.session.session import Session
from tfmemtop.options import ScreenOutcome
from tfmemtop.ui.screen_app import ScreenApp
from tfmemtop.ui.screens.main_screen import MainScreen

if TYPE_CHECKING:
    from tfmemtop.ui.screens.questions import Leaving

# The dialog is imported by the methods that use it: the first frame does not need it.


class LeaveActions(ScreenApp):
    """The part of the app that ends it."""

    session: Session
    main: MainScreen

    def end_for(self, number: int) -> None:
        """Leave at once because of signal *number*, without a question. The script goes on."""
        self.exit(ScreenOutcome(SIGNALLED + number, left_running=self.session.script_goes_on))

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
            self.push_screen(leave_dialog(session.state, self.glyphs), self._leave)

    def _leave(self, choice: "Leaving | None") -> None:
        from tfmemtop.ui.screens.questions import Leaving

        if choice is Leaving.STOP:
            self.session.stop()
        elif choice is Leaving.LEAVE:
            self.session.send(events.Leave())
            self.exit(ScreenOutcome(0, left_running=True))

    async def action_quit(self) -> None:
        """Handle Ctrl-Q, which Textual binds with priority: quit, or, while the user types, send it to the script."""
        if self.main.output.typing:
            self.session.send(events.Input(text="\x11"))
        else:
            self.action_leave()

    def action_help_quit(self) -> None:
        """Handle Ctrl-C: quit. Textual would only show a hint."""
        self.action_leave()
