"""Draws the README's pictures from the tests' recordings: ``python -m screenshots.make``."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.ui import held
from tests.ui.recorded import Recorded, screen
from tfmemtop.options import UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.draw.picture import DARK, picture

HERE = Path(__file__).parent

PICTURES: dict[str, tuple[str, float, tuple[int, int], Sequence[str]]] = {
    "growth-off": ("h200-settings", 20.0, (140, 38), ()),
    "growth-on": ("h200-settings", 45.0, (140, 38), ()),
    "map": ("cpu-demo", 60.0, (140, 38), ("M",)),
    "account": ("h200-settings", 44.0, (100, 30), ("enter",)),
    "runs": ("h200-runs", 51.0, (140, 38), ("H",)),
    "out-of-memory": ("cpu-oom", 39.0, (140, 38), ()),
    "four-cards": ("h200-four-cards", 20.0, (160, 44), ()),
    "narrow": ("h200-settings", 70.0, (80, 24), ()),
}
"""File name: recording, moment in seconds, columns and rows, keys pressed."""

HELD: dict[str, tuple[tuple[int, int], Sequence[str]]] = {
    "holders": ((140, 40), ("B", "down", "down", "enter")),
    "map-of-holders": ((140, 38), ("M", "up", *["right"] * 30)),
}
"""Of the training of ``tests/ui/held.py``: file name, columns and rows, keys pressed."""


async def draw(
    name: str,
    t: float,
    size: tuple[int, int],
    keys: Sequence[str],
    options: UiOptions | None = None,
    theme: Mapping[str, str] = DARK,
) -> str:
    """The picture of recording *name* at *t* seconds after *keys*."""
    return await _drawn(screen(name, t, options), size, keys, theme)


async def _drawn(app: TfmemtopApp, size: tuple[int, int], keys: Sequence[str], theme: Mapping[str, str] = DARK) -> str:
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        app.redraw()
        await pilot.press(*keys)
        await pilot.pause()
        app.redraw()
        await pilot.pause()
        return picture(app.screen._compositor.render_strips(), size[0], theme)


def main() -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()
    for file, (name, t, size, keys) in PICTURES.items():
        (HERE / f"{file}.svg").write_text(asyncio.run(draw(name, t, size, keys)))
        print(f"{file}.svg")
    for file, (size, keys) in HELD.items():
        app = TfmemtopApp(Recorded(held.training()), UiOptions())
        (HERE / f"{file}.svg").write_text(asyncio.run(_drawn(app, size, keys)))
        print(f"{file}.svg")


if __name__ == "__main__":
    main()
