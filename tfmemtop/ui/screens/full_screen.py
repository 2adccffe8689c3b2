"""The base of the screens that cover the main one: a header, one panel, a replay's bar, and a line of keys."""

from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tfmemtop.experiments.session.session import Session
from tfmemtop.state import State
from tfmemtop.ui.draw.lines import Panel
from tfmemtop.ui.panels.header import Header
from tfmemtop.ui.panels.key_bar import HintLine
from tfmemtop.ui.panels.replay_bar import ReplayBar
from tfmemtop.ui.screens.drawn import Changed, Drawn


class MovedPanel(Panel, can_focus=True):
    """A panel in which the arrow keys move a cursor or scroll the lines."""

    def move(self, count: int) -> None:
        """Move by *count* lines, down if positive."""
        raise NotImplementedError(type(self).__name__)

    def page(self, count: int) -> None:
        """Move by *count* times the height, down if positive."""
        raise NotImplementedError(type(self).__name__)


P = TypeVar("P", bound=MovedPanel)


class FullScreen(Drawn, Screen[None], Generic[P]):
    """A screen with one panel over the main screen. A subclass defines the panel, the hints and the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "move(-100000)", show=False),
        Binding("end", "move(100000)", show=False),
    ]

    def __init__(self, session: Session, panel: P) -> None:
        super().__init__()
        self.session = session
        self.panel = panel
        self.header = Header(session, glyphs=panel.glyphs)
        self.replay_bar = ReplayBar(session.replay, glyphs=panel.glyphs) if session.replay else None
        self.keys = HintLine(self.hints, glyphs=panel.glyphs)

    def hints(self) -> list[tuple[str, str]]:
        """Return the keys for the last line, and what they do now."""
        raise NotImplementedError(type(self).__name__)

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.panel
        if self.replay_bar:
            yield self.replay_bar
        yield self.keys

    def on_mount(self) -> None:
        self.panel.focus()
        self.call_after_refresh(self.post_message, Changed())

    def refresh_state(self, state: State) -> None:
        for part in (self.header, self.panel, self.replay_bar, self.keys):
            if part:
                part.show(state)

    def action_close(self) -> None:
        self.dismiss(None)

    def action_move(self, count: int) -> None:
        self.panel.move(count)

    def action_page(self, count: int) -> None:
        self.panel.page(count)
