"""A walk through every screen and dialog, which returns what is shown and what is sent to the terminal."""

from rich.console import RenderableType
from textual._compositor import CompositorUpdate
from textual.screen import Screen

from tests.ui.shown import Recorded
from tfmemtop.events import Event
from tfmemtop.findings.judgement import findings
from tfmemtop.ui import UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.draw.lines import Panel
from tfmemtop.ui.screens.dialog import Dialog

SIZES = ((40, 12), (60, 16), (100, 30), (200, 60))

PLACES = {
    "main": (),
    "output alone": ("P",),
    "allocators alone": ("P", "O"),
    "all again": ("O",),
    "map": ("M",),
    "one region": ("enter",),
    "map as memory ran out": ("escape", "o"),
    "holders": ("escape", "escape", "B"),
    "a holder's parts": ("g", "enter"),
    "a moment of a step": ("right", "right"),
    "two windows": ("c",),
    "what if": ("escape", "escape", "escape", "escape", "X"),
    "why": ("escape", "W"),
    "runs": ("escape", "H"),
    "one run": ("enter",),
    "details": ("escape", "escape", "enter"),
    "details, further down": ("end",),
    "signal": ("escape", "k"),
    "limit": ("escape", "L"),
    "GPUs": ("escape", "V"),
    "arguments": ("escape", "E"),
    "fit": ("escape", "F"),
    "relaunch": ("escape", "R"),
    "leave": ("escape", "q"),
    "help": ("escape", "question_mark"),
}
"""The places of the walk in their order, each with the keys that lead there from the place before."""


class DrawnApp(TfmemtopApp):
    """The app without a terminal. What it would write to one is stored in ``drawn``."""

    drawn = ""

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if isinstance(renderable, CompositorUpdate):
            self.drawn += renderable.render_segments(self.console)


async def tour(stream: list[Event], size: tuple[int, int]) -> dict[str, tuple[str, str]]:
    """Return for each place the text that is shown there, and what was sent to the terminal to draw it.

    The text of all findings is there too, as the place "findings". *size* is columns and rows.
    """
    app = DrawnApp(Recorded(stream), UiOptions())
    seen = {}
    async with app.run_test(size=size, notifications=True) as pilot:
        while app.state.session is None or len(app.state.notices) < 1:
            await pilot.pause()
        app.notify(stream[1].__repr__())
        for place, keys in PLACES.items():
            app.drawn = ""
            await pilot.press(*keys)
            app.redraw()
            await pilot.pause()
            shown = [
                "".join(segment.text for segment in panel.render_line(y))
                for panel in app.screen.query(Panel)
                for y in range(panel.size.height)
            ]
            if isinstance(app.screen, Dialog):
                shown += [strip.text for strip in app.screen._compositor.render_strips()]
            seen[place] = "\n".join(shown), app.drawn
    seen["findings"] = "\n".join(finding.said.text for finding in findings(app.state)), ""
    return seen
