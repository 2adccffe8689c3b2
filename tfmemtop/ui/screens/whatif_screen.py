"""X: the full screen of what other settings would do. Enter takes one of them for the next run."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tfmemtop.experiments.session.session import Session
from tfmemtop.experiments.session.whatif import Unanswered, ask, still_traced, traced
from tfmemtop.failure import describe
from tfmemtop.findings.start_errors import unusable
from tfmemtop.reports.whatif import unanswered
from tfmemtop.state import apply
from tfmemtop.state.predicted import predicted
from tfmemtop.ui import refusals
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.panels import whatif_panel as whatif_screen
from tfmemtop.ui.panels.whatif_panel import WhatIfPanel
from tfmemtop.ui.screens.drawn import Changed
from tfmemtop.ui.screens.full_screen import FullScreen
from tfmemtop.units import format_bytes


class WhatIfScreen(FullScreen[WhatIfPanel]):
    """The screen of other settings. When it opens, recorded traces are replayed, unless that has been done already."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c,X,q", "close", show=False),
        Binding("enter", "take", show=False),
        Binding("tab", "other(1)", show=False, priority=False),
        Binding("shift+tab", "other(-1)", show=False),
    ]

    def __init__(self, session: Session, *, glyphs: Glyphs) -> None:
        super().__init__(session, WhatIfPanel(session.state, glyphs=glyphs))

    def on_mount(self) -> None:
        super().on_mount()
        self.session.end_traces()
        self.run_worker(self._replay(), name="replay", exit_on_error=False)

    async def _replay(self) -> None:
        """Have the recorded traces replayed, and draw each answer when it is in the state."""
        state = self.session.state
        known = {(view.pid, view.device) for view in predicted(state) if not view.replayed.is_missing}
        pools = [pool for pool in traced(state) if (pool.pid, pool.device) not in known]
        here = [found for pool in pools if (found := pool.here())]
        self.panel.said = whatif_screen.REPLAYING if here else whatif_screen.NOT_HERE
        if not pools:
            tracing = any(still_traced(state))
            self.panel.said = whatif_screen.STILL_TRACED if tracing else whatif_screen.NOT_ENOUGH
        self.post_message(Changed())
        for pool in here:
            try:
                apply(state, await ask(pool))
            except Unanswered as error:
                self.panel.said = whatif_screen.failed(unanswered(error.last_line))
            except OSError as error:
                self.panel.said = whatif_screen.failed(describe(error))
            self.post_message(Changed())

    def hints(self) -> list[tuple[str, str]]:
        hints = [("Esc", "back")]
        if self.panel.chosen is not None:
            hints.append((f"{self.panel.glyphs.up}{self.panel.glyphs.down}", "setting"))
            if self.session.may_change:
                hints += [("Enter", whatif_screen.TAKE), ("R", "relaunch")]
        known = predicted(self.panel.state)
        if len(known) > 1:
            hints.append(("Tab", known[(self.panel.which + 1) % len(known)].device))
        return [*hints, ("F1", "help")]

    def action_other(self, step: int) -> None:
        self.panel.which = (self.panel.which + step) % max(1, len(predicted(self.panel.state)))
        self.post_message(Changed())

    def action_take(self) -> None:
        """Use the setting under the cursor for the next run."""
        row, upcoming = self.panel.chosen, self.session.next
        if not self.session.may_change:
            self.app.notify(refusals.no_change(replay=self.session.replay is not None))
        elif row is not None and upcoming is not None:
            state = self.session.state
            try:
                self.session.choose(upcoming.with_replayed(row, state))
            except ValueError as error:
                self.app.notify(unusable(error))
                return
            limit = "none" if row.limit is None else format_bytes(row.limit)
            growth = whatif_screen.taken(limit, "on" if row.growth else "off")
            self.app.notify(growth if state.devices else whatif_screen.taken_limit(limit))
            self.post_message(Changed())
