"""The app of the cluster's screen: draws what the watch reads from Prometheus."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen

from tfmemtop.cluster.watch import ClusterWatch, Seen
from tfmemtop.options import ScreenOutcome, UiOptions
from tfmemtop.ui.screen_app import ScreenApp
from tfmemtop.ui.screens.cluster_screen import KEYS, ClusterScreen


class ClusterApp(ScreenApp):
    """Shows the GPUs of many machines. It only reads from Prometheus, and changes nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding(key.keys, key.action, show=False) for key in KEYS if key.action]

    def __init__(self, watch: ClusterWatch, options: UiOptions, *, job: str | None) -> None:
        super().__init__(options)
        self.watch_ = watch
        self.seen = Seen()
        self.main = ClusterScreen(watch.client.address.url, job, glyphs=self.glyphs)

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def on_mount(self) -> None:
        self.run_worker(self._follow(), name="follow", exit_on_error=True)
        self.set_interval(1.0, self._tick)

    async def _follow(self) -> None:
        async for seen in self.watch_.seen():
            self.seen = seen
            self.redraw()

    def _tick(self) -> None:
        """Redraw the header while there is a trouble, since it shows how long the trouble has lasted."""
        if self.seen.trouble is not None:
            self.redraw()

    def redraw(self) -> None:
        """Draw the newest figures."""
        self._try(lambda: self.main.look(self.seen))

    def on_resize(self) -> None:
        self.call_after_refresh(self.redraw)

    def action_refresh(self) -> None:
        self.watch_.hurry()

    def action_help(self) -> None:
        from tfmemtop.ui.screens.help import HelpDialog

        self.push_screen(HelpDialog("cluster", glyphs=self.glyphs))

    # The end of the app.

    def action_leave(self) -> None:
        self.exit(ScreenOutcome(0))

    async def action_quit(self) -> None:
        self.action_leave()

    def action_help_quit(self) -> None:
        """Handle Ctrl-C: quit, unless a dialog is open. Textual would only show a hint."""
        if not isinstance(self.screen, ModalScreen):
            self.action_leave()
