"""Only the terminal's own colours are used, and none that a light or a dark terminal may have as its background."""

import re
from collections.abc import Mapping

import pytest
from rich.color import ColorType
from rich.style import Style

from screenshots.picture import DARK, picture
from tests.ui import held
from tests.ui.shown import Recorded, screen
from tfmemtop.ui import UiOptions
from tfmemtop.ui.app import TfmemtopApp

RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, GREY = 1, 2, 3, 4, 5, 6, 8
READABLE_ON_BOTH = {RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, GREY}
"""Those of a terminal's sixteen colours that are readable on a dark and on a light background.

The others are black, white and the bright ones. They may be the background, or hardly differ from it.
"""

SCREENS = {
    "main": (),
    "graph": ("s", "w"),
    "limit": ("L",),
    "command": ("E",),
    "gpus": ("V",),
    "signal": ("k",),
    "why": ("W",),
    "runs": ("H",),
    "map": ("M",),
    "help": ("f1",),
    "details": ("enter",),
    "filter": ("slash", "p"),
    "quit": ("q",),
}


def drawn_in(app: TfmemtopApp) -> set[int | None]:
    """Return the numbers of the colours on the screen, of the characters and of their background.

    A colour that has no number is ``None``. The terminal's default colours are left out.
    """
    found: set[int | None] = set()
    for strip in app.screen._compositor.render_strips():
        for segment in strip:
            style = segment.style or Style()
            for color in (style.color, style.bgcolor):
                if color is not None and color.type is not ColorType.DEFAULT:
                    found.add(color.number)
    return found


async def test_no_colour_is_one_that_a_terminal_may_have_as_its_background() -> None:
    app = screen("h200-settings", 44.0)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        app.main.action_toggle_panel("output")  # hide the output: the script's text has colours of its own
        app.redraw()
        shown = set()
        for name, keys in SCREENS.items():
            await pilot.press(*keys)
            await pilot.pause()
            assert drawn_in(app) - READABLE_ON_BOTH == set(), name
            assert CYAN in drawn_in(app), name
            shown.add("\n".join(strip.text for strip in app.screen._compositor.render_strips()))
            await pilot.press("escape")
            await pilot.pause()
        assert len(shown) == len(SCREENS), "each screen was opened"


async def test_who_holds_the_memory_is_told_in_readable_colours_and_letters() -> None:
    app = TfmemtopApp(Recorded(held.training()), UiOptions())
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause()
        app.redraw()
        for keys in (
            (),
            ("B",),
            ("right", "enter"),
            ("escape", "escape", "M", "right"),
        ):
            await pilot.press(*keys)
            await pilot.pause()
            assert {GREEN, YELLOW, MAGENTA, CYAN} <= drawn_in(app) <= READABLE_ON_BOTH, keys


async def test_memory_that_ran_out_is_told_in_readable_colours() -> None:
    app = screen("cpu-oom", 39.0, UiOptions())
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        app.main.action_toggle_panel("output")
        app.redraw()
        await pilot.pause()
        assert RED in drawn_in(app) and drawn_in(app) <= READABLE_ON_BOTH


def brightness(fill: str) -> float:
    """Return the relative luminance of a colour such as ``#16181d``, from 0 to 1, as WCAG 2 defines it."""
    channels = [int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


LIGHT = {
    "background": "#ffffff",
    "foreground": "#24292f",
    "black": "#24292f",
    "red": "#cf222e",
    "green": "#116329",
    "yellow": "#9a6700",
    "blue": "#0969da",
    "magenta": "#8250df",
    "cyan": "#1b7c83",
    "white": "#eaeef2",
    "bright_black": "#8c959f",
    "bright_red": "#a40e26",
    "bright_green": "#1a7f37",
    "bright_yellow": "#bf8700",
    "bright_blue": "#218bff",
    "bright_magenta": "#a475f9",
    "bright_cyan": "#3192aa",
    "bright_white": "#ffffff",
}
"""The colours of a light terminal."""


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
async def test_every_word_is_readable_on_a_dark_and_on_a_light_terminal(theme: Mapping[str, str]) -> None:
    app = screen("h200-settings", 44.0)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        app.redraw()
        await pilot.pause()
        drawn = picture(app.screen._compositor.render_strips(), 120, theme)
    ground = brightness(theme["background"])
    # Text with a background of its own, such as the chosen line, follows a rectangle in the SVG. It is left out.
    words = re.findall(r'(?<!/>\n)<text [^>]*fill="(#[0-9a-f]{6})"[^>]*>([^<]*)</text>', drawn)
    contrasts = {
        word: (max(brightness(fill), ground) + 0.05) / (min(brightness(fill), ground) + 0.05) for fill, word in words
    }
    assert any("274.9M" in word for word in contrasts), "the peak is there"
    assert {word: contrast for word, contrast in contrasts.items() if contrast < 3 and word.strip()} == {}
