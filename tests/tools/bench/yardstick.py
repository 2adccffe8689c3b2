"""The speed of the machine in the same minute. A bound in milliseconds would depend more on the machine than on us.

Each figure is measured several times, and the median counts.
"""

import asyncio
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import lru_cache

from rich.console import Console, RenderableType
from rich.segment import Segment
from textual._compositor import CompositorUpdate
from textual.app import App, ComposeResult
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from tests.tools.bench.table import spread

QUIET_S = 0.06
"""More than three of Textual's intervals of a sixtieth of a second; after each it draws what has changed."""

_FRAMES = 30
_STARTS = 9
_PSS = "import re, textual.app; print(re.search(r'^Pss:\\s+(\\d+)', open('/proc/self/smaps_rollup').read(), re.M)[1])"


class _Plain(Widget):
    """Cells without colour. In each frame every line is different."""

    DEFAULT_CSS = "_Plain { width: 1fr; height: 1fr; }"
    number = 0

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        return Strip([Segment(f"{self.number * 7919 + y:08d} ".ljust(width, "x")[:width])], width)


class Drawing:
    """Makes an app draw whole escape sequences although it has no terminal."""

    console: Console
    drawn = 0

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if isinstance(renderable, CompositorUpdate):
            self.drawn += len(renderable.render_segments(self.console))


class _Repainting(Drawing, App[None]):
    def compose(self) -> ComposeResult:
        yield _Plain()


async def repainted_ms(size: tuple[int, int]) -> float:
    """Do the same as :func:`repaint_ms`, in the event loop that is running."""
    app, taken = _Repainting(), []
    async with app.run_test(size=size):
        plain = app.query_one(_Plain)
        for _ in range(_FRAMES):
            begun, before = time.thread_time(), app.drawn
            plain.number += 1
            plain.refresh()
            await asyncio.sleep(QUIET_S)
            taken.append((time.thread_time() - begun) * 1e3)
            if app.drawn == before:
                raise RuntimeError("nothing was repainted")
    return statistics.median(taken)


def repaint_ms(size: tuple[int, int]) -> float:
    """Return the milliseconds of CPU that Textual takes to repaint *size* plain cells, all changed.

    The time ends with the bytes for the terminal.
    """
    return asyncio.run(repainted_ms(size))


def _start_s(code: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begun


def textual_s() -> float:
    """Return the seconds of ``python -c 'import textual.app'``."""
    return statistics.median(_start_s("import textual.app") for _ in range(_STARTS))


@lru_cache
def textual_mb() -> float:
    """Return the MB, as proportional set, of a Python that has imported ``textual.app``."""
    told = subprocess.run([sys.executable, "-c", _PSS], check=True, capture_output=True, text=True).stdout
    found = re.search(r"\d+", told)
    assert found
    return int(found[0]) * 1024 / 1e6


def against(values: Sequence[float], yardstick: float, digits: int, unit: str, of: str) -> str:
    """``2.31 (2.2 to 9.1)×: 7.2 ms against 3.1 ms of a repaint``."""
    ratios = [value / yardstick for value in values]
    middle = statistics.median(values)
    return f"{spread(ratios, 2)}×: {middle:.{digits}f} {unit} against {yardstick:.{digits}f} {unit} of {of}"
