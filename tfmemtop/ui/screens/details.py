"""Enter on a process: its user and command, its memory, what it requested of TensorFlow and got, its environment."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tfmemtop import events
from tfmemtop.experiments.session.session import Session
from tfmemtop.state import State
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.draw.palette import UNICODE, Glyphs
from tfmemtop.ui.draw.process_page import describe
from tfmemtop.ui.screens.dialog import Hint, PageDialog


class DetailsScreen(PageDialog[None]):
    """The details of one process. They follow the state while the dialog is open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,enter", "cancel", show=False),
        Binding("t,T", "look", show=False),
    ]

    def __init__(
        self,
        session: Session,
        pid: int,
        *,
        glyphs: Glyphs = UNICODE,
    ) -> None:
        """*pid* is the process. Its environment is read on request only, so the dialog sends the engine a command."""
        super().__init__(f"Process {pid}", glyphs=glyphs, width=110)
        self._session = session
        self._state = session.state
        self._pid = pid

    def hints(self) -> list[Hint]:
        look = [("T", "live tensors")] if self._can_look() else []
        return [("Esc", "close"), *look, (f"{self.glyphs.up}{self.glyphs.down} PgUp PgDn", "scroll")]

    def on_mount(self) -> None:
        self._session.send(events.ReadEnvironment(pid=self._pid))
        self._session.send(events.CensusNow(pid=self._pid))

    def action_look(self) -> None:
        """Request a census of the live tensors, if the process allows one."""
        if self._can_look():
            self._session.send(events.CensusNow(pid=self._pid, tensors=True))

    def _can_look(self) -> bool:
        process = self._session.state.processes.get(self._pid)
        return bool(self._session.may_change and process and process.hooked and not process.hooked.ended)

    def refresh_state(self, state: State) -> None:
        self._state = state
        self.redraw()

    def body(self, width: int) -> list[Line]:
        return describe(
            self._state, self._pid, width, self._can_look(), self._session.replay is not None, glyphs=self.glyphs
        )
