"""The search behind the key F, from the keys to the setting of the next run.

It relaunches the script to find the smallest limit that works, or the largest batch size.
"""

from textual.containers import Vertical
from textual.pilot import Pilot

from tests import streams as s
from tests.engines import engines
from tests.ui.shown import ENDED, app, drawn, press, replay, running, source_of, text_of, training
from tfmemtop import events
from tfmemtop.settings import Settings
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.screens.dialog import Dialog

__all__ = ["engines"]

MIB, GIB = s.MIB, s.GIB


def relaunches(shown: TfmemtopApp) -> list[events.Relaunch]:
    return [command for command in source_of(shown).sent if isinstance(command, events.Relaunch)]


def said(shown: TfmemtopApp) -> str:
    """Return the open dialog's text, its lines joined."""
    assert isinstance(shown.screen, Dialog)
    box = shown.screen.query_one(Vertical).content_region
    lines = shown.screen._compositor.render_strips()[box.y : box.bottom]
    return " ".join(" ".join(strip.crop(box.x, box.right).text for strip in lines).split())


async def give(pilot: Pilot[ScreenOutcome], *stream: events.Event) -> str:
    """Let the engine send *stream*, and return the screen's text after it."""
    shown = await drawn(pilot)
    await source_of(shown).more.put(list(stream))
    return text_of(await drawn(pilot))


def started(t: float, number: int, limit: int | None) -> list[events.Event]:
    settings = Settings(growth="on", memory_limit=limit)
    return [s.run(t=t, number=number, pid=100 * number, settings=settings), s.hook(t + 0.1, 100 * number)]


def ended(t: float, run: int) -> list[events.Event]:
    return [
        events.Stopping(t=t, run=run, phase=events.StoppingPhase.TERM, deadline=t + 5),
        events.RunEnd(t=t + 0.1, run=run, exit_code=None, signal=15),
    ]


def gib(t: float, run: int) -> events.Event:
    return s.allocator(t, 100 * run, in_use=GIB, pool=3 * GIB)


async def test_what_will_be_done_is_said_before_it_is() -> None:
    async with running(app(), (120, 36)) as (pilot, shown):
        told = await press(pilot, "F")
        assert "Find the smallest memory limit that works" in told
        assert "another limit for each GPU and growth on" in said(shown)
        assert "Run 1 is ended first." in told and "Enter end run 1 and begin" in told
        assert "'soon' is not understood; give for example: 30 s, 8 tries" in await press(
            pilot, "ctrl+u", *"soon", "enter"
        )
        await press(pilot, "escape")
        assert relaunches(shown) == [] and "FIT" not in text_of(shown)


async def test_tries_are_made_and_what_they_found_is_relaunched_with() -> None:
    async with running(app([*training(), ENDED])) as (pilot, shown):
        told = await press(pilot, "F", "ctrl+u", *"10 s, 2 tries", "enter")
        assert "FIT try 1 of 2" in told and "try 1 of 2: no limit" in told
        (first,) = relaunches(shown)
        assert first.settings == Settings(growth="on") and first.argv == ["python", "train.py"]
        assert "0 of 10 s" in await give(pilot, *started(10.0, 2, None), gib(11.0, 2))
        await press(pilot, "enter")  # closes the dialog; the search goes on
        assert "run 2" in text_of(shown) and "try 1 of 2: " not in text_of(shown)
        await give(pilot, gib(21.6, 2))
        assert isinstance(source_of(shown).sent[-1], events.Stop)
        await give(pilot, *ended(21.7, 2))
        assert relaunches(shown)[-1].settings == Settings(growth="on", memory_limit=3 * GIB)
        await give(pilot, *started(22.0, 3, 3 * GIB), gib(23.0, 3), gib(33.6, 3))
        told = await give(pilot, *ended(33.7, 3))
        assert "The smallest limit that worked: 3.0 GiB. Nothing smaller was tried." in told
        assert "tfmemtop --growth on --memory-limit 3226M -- python train.py" in told and "FIT try" not in told
        assert "LogicalDeviceConfiguration(memory_limit=3226)" in told
        await press(pilot, "R")
        assert relaunches(shown)[-1].settings == Settings(growth="on", memory_limit=3226 * MIB)
        # After the relaunch the result is still there.
        assert "The smallest limit that worked: 3.0 GiB" in await press(pilot, "F")
        assert "Find the smallest memory limit that works" in await press(pilot, "N")


async def test_the_largest_batch_is_found_and_relaunched_with() -> None:
    async with running(app([*training(), ENDED])) as (pilot, shown):
        await press(pilot, "F", "ctrl+u", *"batch=32..64, 1 s", "enter")
        assert "the command has no {batch}: press [E] and put it in place of the value" in said(shown)
        await press(pilot, "escape", "E", "end", *" {batch}", "enter")
        assert "batch=1..4096, 5 steps  the largest batch that passes" in await press(pilot, "F")
        told = await press(pilot, "ctrl+u", *"batch=32..64, 1 s, 3 tries", "enter")
        assert "FIT try 1 of 3" in told and "try 1 of 3: batch=32" in told
        assert relaunches(shown)[-1].argv == ["python", "train.py", "32"]
        for number, t in ((2, 10.0), (3, 20.0)):
            await give(pilot, *started(t, number, None), gib(t + 1, number), gib(t + 3, number))
            told = await give(pilot, *ended(t + 4, number))
        assert relaunches(shown)[-1].argv == ["python", "train.py", "64"]
        assert "The largest value that works" in told and "The largest batch that passed" in told
        assert (
            "64. That is the upper end." in told and "python train.py 64" in told and "R relaunch with batch=64" in told
        )
        await press(pilot, "R")
        assert relaunches(shown)[-1].argv == ["python", "train.py", "64"] and len(relaunches(shown)) == 3


async def test_the_same_key_stops_it_and_the_run_goes_on() -> None:
    async with running(app([*training(), ENDED])) as (pilot, shown):
        await press(pilot, "G")
        await press(pilot, "F", "enter")
        await give(pilot, *started(10.0, 2, None), gib(11.0, 2))
        await press(pilot, "enter", "R")
        assert len(relaunches(shown)) == 1  # another relaunch would spoil the try
        told = await press(pilot, "F", "F")
        assert "The search was not completed: interrupted." in told and "FIT try" not in told
        sent = len(source_of(shown).sent)
        await give(pilot, gib(90.0, 2))
        assert len(source_of(shown).sent) == sent and shown.state.run and shown.state.run.going
        assert "try 1 of 8: no limit" in await press(pilot, "F")
        assert len(relaunches(shown)) == 2
        await press(pilot, "escape", "escape")
        assert "The search was not" not in text_of(shown) and not shown.session.fitting.going


async def test_a_terminal_of_80_columns_shows_all_of_it() -> None:
    async with running(app([*training(), ENDED]), (80, 24)) as (pilot, shown):
        await press(pilot, "F", "ctrl+u", *"1 s, 1 try", "enter")
        await give(pilot, *started(10.0, 2, None), gib(11.0, 2), gib(13.0, 2))
        told = await give(pilot, *ended(14.0, 2))
        assert "Nothing was found in 1 try" in said(shown) and "passed" in told
        assert "N new search" in told


async def test_the_key_says_why_it_does_nothing() -> None:
    async with app(options=UiOptions(readonly=True)).run_test(size=(120, 36)) as pilot:
        assert "This screen is read-only" in await noticed(pilot)
    async with app([s.session([]), s.device()]).run_test(size=(120, 36)) as pilot:
        assert "tfmemtop only watches" in await noticed(pilot)
    source = replay("h200-settings", 30.0)
    async with TfmemtopApp(source, UiOptions()).run_test(size=(120, 36)) as pilot:
        while source.seeking:
            await pilot.pause()
        assert "This is a recording" in await noticed(pilot)
    async with running(app([*training(), ENDED]), (120, 36)) as (pilot, _):
        await press(pilot, "A", "A")
        assert "fit needs the allocator bfc" in await noticed(pilot)


async def noticed(pilot: Pilot[ScreenOutcome]) -> str:
    """Press F, and return the notice that it shows."""
    shown = await drawn(pilot)
    await press(pilot, "F")
    assert not isinstance(shown.screen, Dialog)
    return " ".join(notification.message for notification in shown._notifications)
