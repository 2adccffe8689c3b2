"""Draw the pictures of the README and the manual from the tests' recordings: ``python -m screenshots.make``."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from screenshots.picture import DARK, picture
from tests.cluster.recorded import cluster_screen, settled
from tests.ui.shown import events_until, recording_of, screen
from tfmemtop.events import Run
from tfmemtop.ui import UiOptions

HERE = Path(__file__).parent

PICTURES: dict[str, tuple[str, float, tuple[int, int], Sequence[str]]] = {
    "growth-off": ("h200-settings", 20.0, (140, 38), ()),
    "growth-on": ("h200-settings", 45.0, (140, 38), ()),
    "map": ("cpu-demo", 60.0, (140, 38), ("M",)),
    "account": ("h200-settings", 44.0, (100, 30), ("enter",)),
    "runs": ("h200-runs", 51.0, (140, 38), ("H",)),
    "out-of-memory": ("cpu-oom", 39.0, (140, 38), ()),
    "four-cards": ("h200-four-cards", 20.0, (160, 44), ()),
    "holders": ("h100-resnet", 80.0, (140, 40), ("B",)),
    "holders-xla": ("h100-resnet-xla", 128.0, (140, 40), ("B",)),
    "map-of-holders": ("h100-resnet", 80.0, (140, 38), ("M", "right")),
    "narrow": ("h200-settings", 70.0, (80, 24), ()),
    "attached": ("cpu-attached", 20.0, (140, 36), ()),
    "kernel": ("cpu-kernel-3", 38.0, (140, 34), ("H",)),
}
"""By file name: the recording, the moment in seconds, columns and rows, and the keys that are pressed."""


async def draw(
    name: str,
    t: float,
    size: tuple[int, int],
    keys: Sequence[str],
    options: UiOptions | None = None,
    theme: Mapping[str, str] = DARK,
) -> str:
    """Return an SVG picture of the screen that shows recording *name* at *t* seconds, after *keys* are pressed.

    *size* is columns and rows.
    """
    outside = any(event.outside for event in events_until(name, t) if isinstance(event, Run))
    app = screen(name, t, options or UiOptions(outside=outside, recording=recording_of))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        app.redraw()
        await pilot.press(*keys)
        for reading in [each for each in app.workers if each.group == "earlier"]:
            await reading.wait()
        await pilot.pause()
        app.redraw()
        await pilot.pause()
        return picture(app.screen._compositor.render_strips(), size[0], theme)


async def draw_cluster(size: tuple[int, int]) -> str:
    """Return an SVG picture of the cluster's screen. *size* is columns and rows."""
    app = cluster_screen(UiOptions())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        return picture(app.screen._compositor.render_strips(), size[0], DARK)


def main() -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()
    for file, (name, t, size, keys) in PICTURES.items():
        (HERE / f"{file}.svg").write_text(asyncio.run(draw(name, t, size, keys)))
        print(f"{file}.svg")
    (HERE / "cluster.svg").write_text(asyncio.run(draw_cluster((120, 30))))
    print("cluster.svg")


if __name__ == "__main__":
    main()
