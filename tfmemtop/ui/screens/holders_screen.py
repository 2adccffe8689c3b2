"""B: the full screen of the holders of one pool, at the peak of a step or at any other moment of it."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tfmemtop import events
from tfmemtop.experiments.session.session import Session
from tfmemtop.findings import holders as words
from tfmemtop.reports import labels
from tfmemtop.state.holder_views import pools_with_holders, windows
from tfmemtop.state.pool_views import PoolKey, can_be_read
from tfmemtop.ui import refusals
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.panels.holders_panel import HoldersPanel
from tfmemtop.ui.screens.drawn import Changed, PoolWanted
from tfmemtop.ui.screens.full_screen import FullScreen


class HoldersScreen(FullScreen[HoldersPanel]):
    """The screen of a pool's holders. In a replay, the arrows move the replay, and the brackets move the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "back", show=False),
        Binding("B,q", "close", show=False),
        Binding("enter", "open", show=False),
        Binding("g", "regroup", show=False),
        Binding("left,left_square_bracket", "moment(-1)", show=False),
        Binding("right,right_square_bracket", "moment(1)", show=False),
        Binding("p", "peak", show=False),
        Binding("v", "window", show=False),
        Binding("c", "compare", show=False),
        Binding("n", "now", show=False),
        Binding("tab", "other(1)", show=False, priority=False),
        Binding("shift+tab", "other(-1)", show=False),
    ]

    def __init__(self, session: Session, key: PoolKey | None, *, glyphs: Glyphs, color: bool = True) -> None:
        known = pools_with_holders(session.state)
        # If no window of the pool is known, another pool is shown, of the same process if possible.
        if not windows(session.state, key):
            key = next((one for one in known if key and one[0] == key[0]), next(iter(known), key))
        super().__init__(session, HoldersPanel(session.state, key, glyphs=glyphs, color=color))

    def on_mount(self) -> None:
        super().on_mount()
        self.session.end_traces()

    @property
    def _can_ask(self) -> bool:
        key = self.panel.choice.key
        return self.session.may_change and key is not None and can_be_read(self.session.state, key)

    def hints(self) -> list[tuple[str, str]]:
        panel, choice = self.panel, self.panel.choice
        known = windows(panel.state, choice.key)
        hints = [("Esc", "back")]
        if known:
            arrows = "[ ]" if self.session.replay else "Left Right" if panel.glyphs.ascii else "← →"
            hints.append((f"{panel.glyphs.up}{panel.glyphs.down}", "row"))
            hints.append(("g", f"by {words.group(choice.next_group)}"))
            if choice.pair is None:
                hints += [("p", "peak")] if choice.at is not None else []
                hints += [("Enter", "parts"), (arrows, "moment")]
            if len(known) > 1:
                hints += [("c", "compare" if choice.pair is None else labels.NEXT_OR_NONE), ("v", "window")]
        hints += [("n", "now")] if self._can_ask else []
        pools = pools_with_holders(panel.state)
        if len(pools) > 1 and choice.key in pools:
            pid, device = pools[(pools.index(choice.key) + 1) % len(pools)]
            hints.append(("Tab", device + (f" of {pid}" if pid != choice.key[0] else "")))
        return [*hints, ("M", "map"), ("F1", "help")]

    def _changed(self) -> None:
        self.post_message(Changed())

    def action_back(self) -> None:
        if self.panel.choice.leave():
            self._changed()
        else:
            self.action_close()

    def action_open(self) -> None:
        self.panel.choice.enter()
        self._changed()

    def action_regroup(self) -> None:
        self.panel.choice.regroup()
        self._changed()

    def action_moment(self, step: int) -> None:
        self.panel.move_moment(step)
        self._changed()

    def action_peak(self) -> None:
        self.panel.choice.to_peak()
        self._changed()

    def action_window(self) -> None:
        self.panel.choice.other_window()
        self._changed()

    def action_compare(self) -> None:
        if not self.panel.choice.compare():
            self.app.notify(words.NOTHING_BESIDE, timeout=4)
        self._changed()

    def action_other(self, step: int) -> None:
        self.panel.choice.other_pool(step)
        self._changed()

    def action_map(self) -> None:
        """Show the map of this pool instead of this screen."""
        self.post_message(PoolWanted(self.panel.choice.key, holders=False))

    def action_now(self) -> None:
        """Request a window of the process now, or tell the user why that is not possible."""
        key = self.panel.choice.key
        if self.session.replay is not None:
            self.app.notify(words.NOW_IN_REPLAY)
        elif not self.session.may_change:
            self.app.notify(refusals.no_change(replay=False))
        elif key is None or not can_be_read(self.session.state, key):
            self.app.notify(words.NOW_ENDED)
        else:
            self.session.send(events.HoldersNow(pid=key[0]))
            self.app.notify(words.NOW_ASKED, timeout=4)
