"""The base of the screens that cover the main one: a header, one panel, a replay's bar, and a line of keys."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tfmemtop.events import MapWanted
from tfmemtop.experiments.session.session import Session
from tfmemtop.state import State
from tfmemtop.state.pool_views import PoolKey
from tfmemtop.ui.draw.lines import Panel
from tfmemtop.ui.keys import Hints, KeyBar
from tfmemtop.ui.panels.header import Header, ReplayBar
from tfmemtop.ui.panels.row_table import CursorPanel
from tfmemtop.ui.screens import Changed, Drawn


class CoveringPanel(CursorPanel):
    """The panel of a :class:`FullScreen`. Its bindings are the keys of the screen, its hints their words."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "back", show=False),
        Binding("q", "close", show=False),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.state = session.state

    def hints(self) -> list[tuple[str, str]]:
        """Return the keys between the first and the last one of the last line, and what they do now."""
        raise NotImplementedError(type(self).__name__)

    @property
    def wish(self) -> MapWanted | None:
        """The map that the engine is to read while the panel is shown."""
        return None

    @property
    def sideways(self) -> str:
        """The keys that move sideways. In a replay, the arrows move the replay."""
        return "[ ]" if self.session.replay else "← →"

    def leave(self) -> bool:
        """Go one step back within the panel; return false if there is none."""
        return False

    def changed(self) -> None:
        """Draw the panel, and the keys that have an effect now."""
        self.post_message(Changed())

    def action_back(self) -> None:
        if self.leave():
            self.changed()
        else:
            self.action_close()

    def action_close(self) -> None:
        self.screen.dismiss(None)


def beside(known: Sequence[PoolKey], key: PoolKey | None, step: int) -> PoolKey:
    """Return the pool that stands *step* places after *key* among the *known* ones; after the last comes the first."""
    return known[((known.index(key) if key in known else 0) + step) % len(known)]


def next_pool(known: Sequence[PoolKey], key: PoolKey | None) -> list[tuple[str, str]]:
    """Return the hint of the key that shows the next of the *known* pools; none if there is no other than *key*."""
    if len(known) < 2 or key is None or key not in known:
        return []
    pid, device = beside(known, key, 1)
    return [("Tab", device + (f" of {pid}" if pid != key[0] else ""))]


class FullScreen(Drawn, Screen[None]):
    """A screen with one *panel*, which covers the main screen."""

    def __init__(self, panel: CoveringPanel) -> None:
        super().__init__()
        self.panel = panel
        replay = panel.session.replay
        self.parts: list[Panel] = [
            Header(panel.session),
            panel,
            *([ReplayBar(replay)] if replay else []),
            KeyBar(self._hints),
        ]

    def _hints(self) -> Hints:
        return [("Esc", "back"), *self.panel.hints(), ("F1", "help")]

    @property
    def wish(self) -> MapWanted | None:
        return self.panel.wish

    def compose(self) -> ComposeResult:
        yield from self.parts

    def on_mount(self) -> None:
        self.panel.focus()
        self.call_after_refresh(self.post_message, Changed())

    def refresh_state(self, state: State) -> None:
        for part in self.parts:
            part.show(state)
