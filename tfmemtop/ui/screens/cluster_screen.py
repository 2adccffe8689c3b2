"""The cluster's screen: the server, the table, what is wrong with the chosen row, the keys."""

from textual import on
from textual.app import ComposeResult
from textual.screen import Screen

from tfmemtop.cluster.watch import Seen
from tfmemtop.state import State
from tfmemtop.ui.cluster_keys import KEYS
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.panels.cluster_beside import ChosenPanel, ClusterHeader
from tfmemtop.ui.panels.cluster_table import ClusterTable
from tfmemtop.ui.panels.key_bar import HintLine, Hints
from tfmemtop.ui.screens.drawn import Changed, Drawn

_CHOSEN, _CHOSEN_SHORT = 4, 2
"""Lines for what is wrong with the chosen row, title included: on a screen of ``_ROOMY`` lines, and on a lower one."""
_ROOMY = 18


class ClusterScreen(Drawn, Screen[None]):
    """The screen of a cluster. It draws what the app has read last."""

    def __init__(self, url: str, job: str | None, *, glyphs: Glyphs) -> None:
        super().__init__()
        self.header = ClusterHeader(url, job, glyphs=glyphs)
        self.table = ClusterTable(job, glyphs=glyphs)
        self.chosen = ChosenPanel(self.table, glyphs=glyphs)
        self.keys = HintLine(self.hints, glyphs=glyphs)

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.table
        yield self.chosen
        yield self.keys

    def on_mount(self) -> None:
        self.table.focus()
        self.call_after_refresh(self.look, self.table.seen)

    def look(self, seen: Seen) -> None:
        """Draw *seen*."""
        self.chosen.styles.height = _CHOSEN if self.app.size.height >= _ROOMY else _CHOSEN_SHORT
        for part in (self.header, self.table):
            part.look(seen)
        self.chosen.redraw()
        self.keys.redraw()

    def refresh_state(self, state: State) -> None:
        self.look(self.table.seen)

    def hints(self) -> Hints:
        """The keys of the last line."""
        return self.table.mode or [(key.shown, key.footer) for key in KEYS if key.footer]

    @on(ClusterTable.Moved)
    def _moved(self) -> None:
        self.chosen.redraw()

    @on(Changed)
    def _changed(self) -> None:
        self.keys.redraw()
        self.table.redraw()
