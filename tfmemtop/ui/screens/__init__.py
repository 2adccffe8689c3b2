"""What opens over the main screen: dialogs, and screens of their own. Here is what the app uses of each of them."""

from dataclasses import dataclass

from textual.message import Message

from tfmemtop.events import MapWanted
from tfmemtop.state import State
from tfmemtop.state.pool_views import PoolKey

MAP_PACE_S = 1.0
"""Seconds between two maps while the user looks at one."""


class Changed(Message):
    """The user has changed what is to be shown, so the app must draw anew."""


@dataclass
class PoolWanted(Message):
    """The user wants to look into the pool ``key``: at its holders if ``holders`` is true, else at its map.

    ``column`` is the begin and end of the time to look at, in session seconds; without it, the peak is shown.
    """

    key: PoolKey | None
    holders: bool
    column: tuple[float, float] | None = None


class Drawn:
    """The base of every screen and dialog."""

    def refresh_state(self, state: State) -> None:
        """Draw *state*, the newest one."""

    @property
    def wish(self) -> MapWanted | None:
        """The map that the engine is to read while this screen is on top."""
        return None
