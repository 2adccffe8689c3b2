"""A screen of its own over the main one: its header, one panel, a replay's bar, and a line of keys."""

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tfmemtop.state import State
from tfmemtop.ui.header import Header
from tfmemtop.ui.key_bar import HintLine
from tfmemtop.ui.lines import Panel
from tfmemtop.ui.replay_bar import ReplayBar
from tfmemtop.ui.source import ReplaySource

if TYPE_CHECKING:
    from tfmemtop.ui.app import TfmemtopApp


class MovedPanel(Panel, can_focus=True):
    """A panel in which the arrow keys move a choice or the lines."""

    def move(self, count: int) -> None:
        """So many lines down, or up."""
        raise NotImplementedError(type(self).__name__)

    def page(self, count: int) -> None:
        """So many heights down, or up."""
        raise NotImplementedError(type(self).__name__)


P = TypeVar("P", bound=MovedPanel)


class FullScreen(Screen[None], Generic[P]):
    """The app calls :meth:`refresh_state` with each new picture. Classes of this bring ``panel``, hints and keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "move(-100000)", show=False),
        Binding("end", "move(100000)", show=False),
    ]

    def __init__(self, app: "TfmemtopApp", panel: P) -> None:
        super().__init__()
        self._app = app
        self.panel = panel
        self.header = Header(glyphs=app.glyphs)
        source = app.source if isinstance(app.source, ReplaySource) else None
        self.replay_bar = ReplayBar(source, glyphs=app.glyphs) if source else None
        self.keys = HintLine(self.hints, glyphs=app.glyphs)

    def hints(self) -> list[tuple[str, str]]:
        """The keys worth naming now, and what they do."""
        raise NotImplementedError(type(self).__name__)

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.panel
        if self.replay_bar:
            yield self.replay_bar
        yield self.keys

    def on_mount(self) -> None:
        self.panel.focus()
        self.call_after_refresh(self._app.redraw)

    def refresh_state(self, state: State) -> None:
        """Show *state*."""
        self.header.next_words, self.header.marks = self._app.header.next_words, self._app.header.marks
        for part in (self.header, self.panel, self.replay_bar, self.keys):
            if part:
                part.show(state)

    def action_close(self) -> None:
        self.dismiss(None)

    def action_move(self, count: int) -> None:
        self.panel.move(count)

    def action_page(self, count: int) -> None:
        self.panel.page(count)
