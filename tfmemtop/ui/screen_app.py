"""The common base of a session's app and a cluster's app: look, terminal, and keys for every screen."""

from pathlib import Path

from tfmemtop.options import UiOptions
from tfmemtop.ui.base_app import BaseApp
from tfmemtop.ui.draw.palette import ASCII, UNICODE
from tfmemtop.ui.driver import TerminalDriver, driver_class


class ScreenApp(BaseApp):
    """An app that draws on the user's terminal, in the terminal's colours."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; background: ansi_default; color: ansi_default; }
    ModalScreen { background: transparent; }
    """

    def __init__(self, options: UiOptions) -> None:
        super().__init__(driver_class(), ansi_color=True)
        self.animation_level = "none"
        self.ascii_only = options.ascii
        self.color = options.color
        self.glyphs = ASCII if options.ascii else UNICODE

    def give_terminal_back(self) -> None:
        """Restore the terminal at once: the last resort for a screen that does not end by itself."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.give_back()

    def action_picture(self) -> None:
        """Offer to write a picture of the current screen into a file."""
        from tfmemtop.ui.screens.picture_dialog import picture_dialog

        def written(path: Path | None) -> None:
            if path is not None:
                self.notify(f"The picture is in {path}")

        # A private name of Textual's, used only here. Its public methods give pictures as SVG only.
        strips = self.screen._compositor.render_strips()
        self.push_screen(picture_dialog(strips, self.size.width, self.glyphs), written)
