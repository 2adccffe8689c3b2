"""A moment that is chosen on the graphs: its figures, its holders, and the line of the steps' time."""

import re

import msgspec
from textual.pilot import Pilot

from tests import streams as s
from tests.ui import held
from tests.ui.shown import drawn, press, replay, running, screen, text_of
from tfmemtop import events
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.panels.holders_choice import HoldersChoice
from tfmemtop.ui.panels.holders_panel import HoldersPanel


def title_row(shown: str) -> int:
    """Return the row of the first panel below the graphs."""
    return next(row for row, line in enumerate(shown.splitlines()) if " Processes " in line)


async def test_the_arrows_choose_a_moment_whose_figures_stand_in_one_line() -> None:
    async with screen("h200-runs", 51.0).run_test(size=(80, 24)) as pilot:
        now = text_of(await drawn(pilot))
        assert "util 25%" in now and "run 1 at" not in now
        assert "← → moment" in await press(pilot, "c")
        told = await press(pilot, *["left"] * 30)
        assert re.search(r"run 1 at 00:[12]\d · in use \d{3}\.\dM · pool 137\.5G", told)
        assert "138.1 of 140.4 GiB" in told and "cached 137." in told and "peak" not in told.splitlines()[2]
        assert title_row(text_of(await drawn(pilot))) == title_row(now), "nothing moves"
        assert "run 1 at 00:00" in await press(pilot, "home")
        assert "util 25%" in await press(pilot, "n")
        assert "q quit" in await press(pilot, "escape")


async def test_a_click_on_the_graph_chooses_that_moment_and_tab_leaves_it() -> None:
    async with running(screen("h200-runs", 51.0)) as (pilot, _):
        await pilot.click(offset=(55, 10))
        assert re.search(r"run 1 at 00:1\d · in use", text_of(await drawn(pilot)))
        assert "run 1 at" not in await press(pilot, "tab")


async def open_holders(pilot: Pilot[ScreenOutcome], moves: int) -> tuple[str, HoldersPanel]:
    await drawn(pilot)
    told = await press(pilot, "c", *["left"] * moves, "enter")
    app = pilot.app
    assert isinstance(app, TfmemtopApp) and isinstance(app.focused, HoldersPanel)
    return told, app.focused


async def test_enter_opens_the_holders_of_that_moment_and_esc_leads_back_to_it() -> None:
    async with running(screen("cpu-holders", 30.0)) as (pilot, _):
        app = pilot.app
        assert isinstance(app, TfmemtopApp)
        await press(pilot, "c")
        while not app.main.devices.moment.column[0] <= 20.7 <= app.main.devices.moment.column[1]:
            await pilot.press("left")
        told = text_of(await drawn(pilot))
        assert "Holders of CPU:0" in await press(pilot, "enter")
        assert isinstance(app.focused, HoldersPanel)
        choice = app.focused.choice
        assert choice.window is not None and choice.at is not None
        highest = choice.standing(choice.window, choice.at).total
        assert highest > 0.9 * choice.window.peak, "the highest of the column, not whatever stood at its end"
        await press(pilot, "escape", "escape")
        assert text_of(await drawn(pilot)) == told


async def test_where_nothing_was_recorded_the_nearest_step_is_shown_and_that_is_said() -> None:
    async with screen("cpu-holders", 30.0).run_test(size=(160, 48), notifications=True) as pilot:
        told, panel = await open_holders(pilot, 3)
        assert "No allocations were recorded at that time" in told and "recorded at 00:20" in told
        assert panel.choice.at is None


async def test_of_windows_that_begin_together_the_nearest_is_shown() -> None:
    """What is kept of the run's start begins as one window, and each phase in it ends at another time."""
    early = held.step(1).done(9.0)
    late = msgspec.structs.replace(early, t=early.t + 2, ended=early.ended + 2)
    stream = [*(event for event in held.training() if not isinstance(event, events.Holders)), early, late]
    choice = HoldersChoice(s.fold(stream), (early.pid, early.device))
    choice.to_column(late.ended + 1, late.ended + 2)
    assert choice.window == late
    choice.other_window()
    assert choice.window == early


async def test_in_a_replay_the_arrows_choose_and_the_space_bar_still_plays() -> None:
    source = replay("cpu-holders", 30.0)
    app = TfmemtopApp(source, UiOptions())
    async with app.run_test(size=(120, 36)) as pilot:
        while app.state.session is None or source.seeking:
            await pilot.pause()
        before, paused = source.position_s, source.paused
        assert "run 1 at" in await press(pilot, "c", "left", "left")
        assert source.position_s == before and source.paused is paused
        await press(pilot, "space")
        assert source.paused is not paused
        await press(pilot, "escape", "left")
        assert source.position_s == before - 5.0


async def test_where_no_graph_is_shown_no_moment_can_be_chosen() -> None:
    async with running(screen("cpu-plain", 6.0), (80, 24), notifications=True) as (pilot, _):
        assert "No graph is shown here." in await press(pilot, "c")


async def test_a_terminal_that_has_become_too_small_for_a_graph_has_no_moment() -> None:
    async with running(screen("h200-runs", 51.0), (80, 24)) as (pilot, _):
        await press(pilot, "c", "left")
        await pilot.resize_terminal(10, 3)
        await drawn(pilot)
        await press(pilot, "home", "right", "left", "end")
        await pilot.resize_terminal(80, 24)
        assert "run 2" in text_of(await drawn(pilot))


async def test_t_draws_the_time_of_a_step_and_names_the_lines_top() -> None:
    async with running(screen("h200-runs", 51.0), (80, 24)) as (pilot, _):
        assert "steps 0 to 20.0 ms" in await press(pilot, "t"), "about twice the 7 ms that Keras shows, rounded up"
        app = pilot.app
        assert isinstance(app, TfmemtopApp) and app.choices.steps
        assert "steps 0 to" not in await press(pilot, "t")


async def test_without_a_counted_function_t_says_so() -> None:
    async with running(screen("h200-settings", 44.0), (120, 36)) as (pilot, _):
        assert "no steps counted" in await press(pilot, "t")


async def test_each_run_on_the_graph_says_what_its_settings_were() -> None:
    async with screen("h200-runs", 51.0).run_test(size=(80, 24)) as pilot:
        assert re.search("run 1 growth off .*run 2 growth on", text_of(await drawn(pilot)))
