"""Opens the two screens about one pool, its map and its holders. Each of them can open the other."""

from textual.app import App
from textual.screen import Screen

from tfmemtop.experiments.session.session import Session
from tfmemtop.options import ScreenOutcome
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.screens.drawn import Changed, PoolWanted


class PoolScreens(App[ScreenOutcome]):
    """The part of the app that opens the screens about a pool."""

    session: Session
    glyphs: Glyphs
    color: bool

    def on_pool_wanted(self, message: PoolWanted) -> None:
        """Show the map or the holders of a pool, in place of an open screen about a pool: one key then leads back."""
        from tfmemtop.ui.screens.holders_screen import HoldersScreen
        from tfmemtop.ui.screens.map_screen import MapScreen

        if isinstance(self.screen, (HoldersScreen, MapScreen)):
            self.pop_screen()
        kind = HoldersScreen if message.holders else MapScreen
        wanted: Screen[None] = kind(self.session, message.key, glyphs=self.glyphs, color=self.color)
        self.push_screen(wanted, self._left)

    def _left(self, _: None) -> None:
        self.post_message(Changed())
