"""Whatever looks clickable can be clicked: keys, rows, columns, panels and findings."""

from textual.pilot import Pilot

from tests.ui.shown import drawn, running, screen, source_of, text_of
from tfmemtop import events
from tfmemtop.ui import ScreenOutcome
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.screens.why_screen import WhyScreen


async def click(pilot: Pilot[ScreenOutcome], words: str) -> str:
    """Click on the first place where *words* are shown, and return the screen's text after it."""
    app = pilot.app
    assert isinstance(app, TfmemtopApp)
    lines = text_of(app).splitlines()
    y = next(at for at, line in enumerate(lines) if words in line)
    await pilot.click(offset=(lines[y].index(words), y))
    await pilot.pause()
    return text_of(await drawn(pilot))


async def test_keys_rows_columns_and_panels_take_clicks() -> None:
    app = screen("h200-settings", 44.0)
    async with running(app) as (pilot, _):
        assert "Memory limit of the next run" in await click(pilot, "L limit")
        assert "Memory limit of the next run" not in await click(pilot, "Esc close")
        assert "sort GPU-MEM" in await click(pilot, "GPU-MEM")
        assert "Pool of GPU:0" in await click(pilot, "Map of GPU:0")
        assert "Pool of GPU:0" not in await click(pilot, "Esc back")
        await click(pilot, "── Output")
        assert app.main.output.has_focus
        await click(pilot, "train.py  ")
        assert app.screen is app.main


async def test_a_finding_is_explained_by_a_click() -> None:
    app = screen("cpu-oom", 39.0)
    async with running(app, (120, 36)) as (pilot, _):
        await click(pilot, "Out of memory")
        assert isinstance(app.screen, WhyScreen)


async def test_a_signal_is_chosen_and_not_sent_by_a_click_on_its_row() -> None:
    app = screen("h200-settings", 44.0)
    async with running(app, (120, 36)) as (pilot, _):
        await pilot.press("k")
        await drawn(pilot)
        await click(pilot, "SIGINT")
        assert not [command for command in source_of(app).sent if isinstance(command, events.Signal)]
        await click(pilot, "Enter send SIGINT")
        (sent,) = [command for command in source_of(app).sent if isinstance(command, events.Signal)]
        assert sent.signal == 2 and sent.pids == [2751]
