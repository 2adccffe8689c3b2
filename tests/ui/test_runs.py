"""The screen behind the key H: the list of runs, two of them in one graph, and the differences between them.

The first line of the screen names the rank that it shows, if there are several.
"""

import msgspec
import pytest
from textual.pilot import Pilot

from tests import streams as s
from tests.ui.shown import app, drawn, press, replay, running, screen, text_of
from tfmemtop import events
from tfmemtop.experiments.session.replay import ReplaySource
from tfmemtop.placement import Placement
from tfmemtop.state.comparable import Measure, span
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.panels.runs_panel import RunsPanel
from tfmemtop.ui.screens.full_screen import FullScreen


def row(shown: str, run: int) -> str:
    """Return the row of *run* in the list."""
    return next(line for line in shown.splitlines() if line[3:7].strip() == str(run))


async def test_the_newest_two_are_laid_over_until_others_are_picked() -> None:
    async with running(screen("h200-settings", 60.0), (120, 36)) as (pilot, _):
        shown = await press(pilot, "H")
        assert "Run 2 and run 3: process total" in shown
        assert "● run 2" in shown.replace("─", "") and "limit 4.0 GiB · at most" in shown
        shown = await press(pilot, "up", "up", "space", "down", "space")
        assert "Run 1 and run 2: process total" in shown
        assert row(shown, 1).startswith(" ●") and row(shown, 2).startswith(" ○")
        assert "growth on, over the first 10 s of each after memory was first held: 137.0 GiB less held" in shown
        assert "growth off · at most 138.1 GiB" in shown
        # A third run replaces the one that was picked first. A run that is picked again is removed.
        assert "Run 2 and run 3" in await press(pilot, "down", "space")
        assert "Run 2 and run 3" in await press(pilot, "space")
        assert "Run 1 and run 3" in await press(pilot, "up", "space", "up", "space")


async def test_what_is_laid_over_can_be_changed() -> None:
    async with running(screen("h200-settings", 60.0), (120, 36)) as (pilot, _):
        assert "Run 2 and run 3: process total" in await press(pilot, "H")
        assert "Run 2 and run 3: pool" in await press(pilot, "m")
        assert "Run 2 and run 3: in use" in await press(pilot, "m")
        assert "process total" in await press(pilot, "m")


async def test_what_is_not_known_of_both_is_not_offered() -> None:
    async with running(screen("h200-settings", 125.0), (120, 36)) as (pilot, _):
        await press(pilot, "H")
        # cuda_malloc_async does not report the size of its pool.
        assert "Run 4 and run 5: in use" in await press(pilot, "m")
        assert isinstance(pilot.app.focused, RunsPanel) and pilot.app.focused.next_measure is Measure.PROCESS


async def test_the_graph_goes_on_with_the_run_and_a_hidden_screen_draws_nothing() -> None:
    shown = app()
    async with running(shown, (120, 36)) as (pilot, _):
        told = await press(pilot, "H")
        assert "There is one run so far" in told and "Run 1: process total" in told
        drawings: list[str] = []
        build = shown.main.table.build
        shown.main.table.build = lambda width, height: drawings.append("table") or build(width, height)  # type: ignore[method-assign,func-returns-value]
        await drawn(pilot)
        assert drawings == []
        await press(pilot, "escape")
        await drawn(pilot)
        assert drawings and not isinstance(shown.screen, FullScreen)


async def test_in_a_replay_the_runs_are_those_of_its_moment() -> None:
    source = replay("h200-settings", 30.0)
    shown = TfmemtopApp(source, UiOptions())
    async with shown.run_test(size=(120, 36)) as pilot:
        await caught_up(pilot, source)
        assert "Run 1 and run 2" in await press(pilot, "H")
        await press(pilot, "up", "enter")
        assert isinstance(shown.focused, RunsPanel) and shown.focused.picked == [1]
        source.seek(125.0)
        await caught_up(pilot, source)
        assert "Run 1 and run 5" in text_of(await drawn(pilot))
        source.seek(20.0)
        await caught_up(pilot, source)
        told = text_of(await drawn(pilot))
        assert "Run 1: process total" in told and "one run so far" in told


async def caught_up(pilot: Pilot[ScreenOutcome], source: ReplaySource) -> None:
    while source.seeking:
        await pilot.pause()
    await drawn(pilot)


@pytest.mark.parametrize(("longest", "told"), [(0.0, 10.0), (31.0, 45.0), (3601.0, 5400.0), (7e5, 14 * 86400.0)])
def test_the_scale_of_time_is_round_and_reaches_the_longest(longest: float, told: float) -> None:
    assert span(longest) == told


THIRD = Placement(job="812", rank=3, ranks=64, local_rank=1, host="node2", source="slurm")
ALONE = msgspec.structs.replace(THIRD, rank=0, ranks=1)


def placed(place: Placement | None) -> list[events.Event]:
    return [msgspec.structs.replace(s.session(), placement=place), s.run(), s.process(0.2, 100)]


@pytest.mark.parametrize(
    ("place", "width", "told"),
    [
        (THIRD, 160, "rank 3 of 64, job 812, on node2"),
        (THIRD, 60, "rank 3/64"),
        (ALONE, 160, None),
        (None, 160, None),
    ],
)
async def test_the_first_line_says_which_rank_it_is(place: Placement | None, width: int, told: str | None) -> None:
    async with app(placed(place)).run_test(size=(width, 24)) as pilot:
        line = text_of(await drawn(pilot)).splitlines()[0]
        assert ("rank" in line) == (told is not None)
        assert (told or "run 1") in line
        assert "train.py" in line and len(line) <= width
