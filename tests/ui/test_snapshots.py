"""Every screen looks as it did when its picture was last approved.

Most screens show recordings of real sessions. Those that arrange themselves by the size are shown small and large.
Look at the differences before you approve them:
``pytest tests/ui/test_snapshots.py --snapshot-update``. The pictures depend on how Textual draws, so these tests
fail with any other release of it than the one in pyproject.toml.
"""

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import pytest
from textual.app import App
from textual.pilot import Pilot

from tests.cluster.recorded import cluster_screen, settled
from tests.ui import held, test_whatif_screen
from tests.ui.shown import Recorded, replay, screen
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp

pytestmark = pytest.mark.screens

PINNED = re.findall(r"textual==([\d.]+)", (Path(__file__).parents[2] / "pyproject.toml").read_text())
if [version("textual")] != PINNED:
    pytest.fail(
        f"the snapshots need textual=={PINNED[0]}, here is {version('textual')}: install .[test]", pytrace=False
    )

USUAL = (120, 36)
SIZES = [(80, 24), (200, 60)]


@dataclass(frozen=True)
class Shown:
    """A recording, a moment in it (``t``, seconds), and the keys that lead to a screen."""

    recording: str
    t: float
    keys: tuple[str, ...] = ()
    options: UiOptions = field(default_factory=UiOptions)


SCREENS = {
    "gpu": Shown("h200-settings", 44.0),
    "four-cards": Shown("h200-four-cards", 20.0),
    "moment": Shown("h200-runs", 51.0, ("c", *["left"] * 40, "t")),
    "cpu-pool": Shown("cpu-demo", 60.0),
    "cpu-without-pool": Shown("cpu-plain", 6.0),
    "importing": Shown("h200-settings", 1.0),
    "out-of-memory": Shown("cpu-oom", 39.0),
    "ascii": Shown("h200-settings", 44.0, options=UiOptions(ascii=True, color=False)),
    "details": Shown("h200-settings", 44.0, ("enter",)),
    "map": Shown("h200-settings", 44.0, ("M",)),
    "holders": Shown("cpu-holders", 30.0, ("B", "down", "enter")),
    "why": Shown("h200-settings", 20.0, ("W",)),
    "signal": Shown("h200-settings", 44.0, ("k",)),
    "limit": Shown("h200-settings", 44.0, ("L",)),
    "runs": Shown("h200-settings", 125.0, ("H",)),
    "help": Shown("h200-settings", 44.0, ("f1",)),
}
AT_EACH_SIZE = ("gpu", "out-of-memory", "map", "holders")


HELD = {
    "holders-lifetimes": ("B", "l", "down"),
    "holders-beside-the-map": (),
    "map-of-holders": ("M", "up", "right"),
}


class Compare(Protocol):
    def __call__(self, app: App[ScreenOutcome], *, terminal_size: tuple[int, int], run_before: object) -> bool: ...


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    """Set the time zone to UTC: clocks on the screen show the recording's time, which must look the same everywhere."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def approved(app: TfmemtopApp, keys: Sequence[str], size: tuple[int, int], snap_compare: Compare) -> bool:
    """Return whether *app* looks after *keys* as it did when that was approved."""
    app.main.output.frame_s = 60.0  # enough that no output is left out, on a slow machine too

    async def run_before(pilot: Pilot[ScreenOutcome]) -> None:
        await pilot.pause()
        while app.state.session is None or (app.session.replay and app.session.replay.seeking):
            await pilot.pause()
        app.redraw()
        await pilot.press(*keys)
        await pilot.pause()
        app.redraw()
        while app.main.output.display and app.main.output.behind:
            await pilot.pause()

    return snap_compare(app, terminal_size=size, run_before=run_before)


@pytest.mark.parametrize(
    ("name", "size"),
    [(name, size) for name in SCREENS for size in (SIZES if name in AT_EACH_SIZE else [USUAL])],
    ids=lambda value: value if isinstance(value, str) else f"{value[0]}x{value[1]}",
)
def test_screen(name: str, size: tuple[int, int], snap_compare: Compare) -> None:
    shown = SCREENS[name]
    assert approved(screen(shown.recording, shown.t, shown.options), shown.keys, size, snap_compare)


@pytest.mark.parametrize("name", HELD)
def test_holders(name: str, snap_compare: Compare) -> None:
    assert approved(TfmemtopApp(Recorded(held.training()), UiOptions()), HELD[name], USUAL, snap_compare)


def test_what_if(snap_compare: Compare) -> None:
    app = TfmemtopApp(Recorded(test_whatif_screen.replayed()), UiOptions())
    assert approved(app, ("X", "down"), (160, 48), snap_compare)


def test_replay(snap_compare: Compare) -> None:
    source = replay("h200-settings", 44.0)
    assert approved(TfmemtopApp(source, UiOptions()), (), SIZES[0], snap_compare)


def test_cluster(snap_compare: Compare) -> None:
    assert snap_compare(cluster_screen(UiOptions()), terminal_size=(160, 48), run_before=settled)
