"""The whole screen under keys: what is sent to the engine, and what the user is told."""

import asyncio
from typing import Any

import msgspec
from rich.cells import cell_len
from textual.pilot import Pilot

from tests import streams as s
from tests.ui.recorded import Recorded, source_of
from tfmemtop import events
from tfmemtop.options import Outcome, UiOptions
from tfmemtop.settings import Settings
from tfmemtop.ui.app import TfmemtopApp

GIB = 2**30


def training() -> list[events.AnyEvent]:
    return [
        s.session(),
        s.run(),
        s.device(),
        s.process(0.3, 100),
        s.alive(1.0, 100),
        s.hook(1.1, 100),
        s.effective(1.2, 100),
        s.device_reading(2.0, {100: 2 * GIB}),
        s.allocator(2.1, 100, in_use=GIB // 8, peak=GIB),
        events.Output(t=2.2, run=1, text="hello from the script\r\n"),
    ]


ENDED = events.RunEnd(t=3.0, run=1, exit_code=3, signal=None)


def app(stream: list[events.AnyEvent] | None = None, options: UiOptions | None = None) -> TfmemtopApp:
    return TfmemtopApp(Recorded(training() if stream is None else stream), options or UiOptions())


async def drawn(pilot: Pilot[Outcome]) -> TfmemtopApp:
    """The app once it has folded all there is and drawn it."""
    await pilot.pause()
    shown = pilot.app
    assert isinstance(shown, TfmemtopApp)
    shown.redraw()
    await pilot.pause()
    return shown


def text_of(shown: TfmemtopApp) -> str:
    """The screen as text."""
    strips = shown.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


async def press(pilot: Pilot[Outcome], *keys: str) -> str:
    await pilot.press(*keys)
    return text_of(await drawn(pilot))


async def test_two_keys_try_another_setting() -> None:
    async with app().run_test(size=(160, 48)) as pilot:
        shown = await drawn(pilot)
        assert "next: growth on" in await press(pilot, "G")
        assert "Run 1 is still running" in await press(pilot, "R")
        await press(pilot, "r")
        (command,) = [c for c in source_of(shown).sent if isinstance(c, events.Relaunch)]
        assert command.settings == Settings(growth="on") and command.argv == ["python", "train.py"]
        assert "next:" not in text_of(shown) or source_of(shown).sent


async def test_a_limit_is_typed_picked_or_refused() -> None:
    async with app().run_test(size=(160, 48)) as pilot:
        await drawn(pilot)
        assert "the peak in use so far, 1.0 GiB, and a tenth more" in await press(pilot, "L")
        assert "is no size" in await press(pilot, *"4X", "enter")
        assert "more than there is: 140.0 GiB" in await press(pilot, "backspace", "backspace", *"200G", "enter")
        for _ in range(4):
            await pilot.press("backspace")
        assert "next: limit 70.0 GiB" in await press(pilot, *"50%", "enter")
        assert "next: limit 1.1 GiB" in await press(pilot, "L", "ctrl+u", "down", "enter")


async def test_after_an_allocation_failed_three_keys_run_it_with_a_limit_that_would_have_held_it() -> None:
    failed = events.OutOfMemory(t=2.5, pid=100, message="OOM", device="GPU:0", requested=2 * GIB, operation="AddV2")
    async with app([*training(), failed, ENDED]).run_test(size=(160, 48)) as pilot:
        shown = await drawn(pilot)
        assert "in use and asked for when it ran out, 2.1 GiB, and a tenth more" in await press(pilot, "L")
        await press(pilot, "enter", "R")
        (command,) = [c for c in source_of(shown).sent if isinstance(c, events.Relaunch)]
        assert command.settings.memory_limit == 2394 * 2**20  # of 2.125 GiB


async def test_arguments_are_edited_with_their_environment() -> None:
    async with app().run_test(size=(160, 48)) as pilot:
        shown = await drawn(pilot)
        await press(pilot, "E", "home", *"BATCH=64 ", "end", *" --epochs 3", "enter")
        await press(pilot, "R", "r")
        (command,) = [c for c in source_of(shown).sent if isinstance(c, events.Relaunch)]
        assert command.argv == ["python", "train.py", "--epochs", "3"]
        assert command.settings.environment == {"BATCH": "64"}


async def test_an_ended_script_is_started_again_without_asking() -> None:
    async with app([*training(), ENDED]).run_test(size=(160, 48)) as pilot:
        shown = await drawn(pilot)
        assert "Run 1 ended with exit code 3" in text_of(shown)
        await press(pilot, "R")
        assert isinstance(source_of(shown).sent[-1], events.Relaunch)


async def test_quitting_asks_what_becomes_of_the_script() -> None:
    async with app().run_test(size=(160, 48)) as pilot:
        shown = await drawn(pilot)
        asked = await press(pilot, "q")
        assert "leave it running" in asked and "/home/ada/abcde.log" in asked
        await press(pilot, "escape")
        assert shown.is_running
        await press(pilot, "ctrl+c")
        assert "The script is still running" in text_of(shown)
        await pilot.press("l")
        await pilot.pause()
        assert shown.return_value == Outcome(0, left_running=True)
        assert isinstance(source_of(shown).sent[-1], events.Leave)


async def test_stopping_it_waits_for_its_end_and_gives_its_exit_code() -> None:
    async with app().run_test(size=(160, 48)) as pilot:
        shown = await drawn(pilot)
        await press(pilot, "q", "s")
        stop = source_of(shown).sent[-1]
        assert isinstance(stop, events.Stop) and stop.quit
        assert shown.is_running
        gone: asyncio.Queue[list[events.AnyEvent] | None] = source_of(shown).more
        await gone.put([events.Stopping(t=3.0, run=1, phase="term", deadline=13.0)])
        assert "killed in 10 s" in text_of(await drawn(pilot))
        await gone.put([events.RunEnd(t=4.0, run=1, exit_code=None, signal=15)])
        await gone.put(None)
        await pilot.pause()
        assert shown.return_value == Outcome(143)


async def test_an_engine_that_vanishes_is_told() -> None:
    async with app().run_test(size=(160, 48)) as pilot:
        shown = await drawn(pilot)
        await source_of(shown).more.put(None)
        told = text_of(await drawn(pilot))
        assert "The engine has gone" in told and "ENGINE GONE" in told


async def test_read_only_changes_nothing() -> None:
    async with app(options=UiOptions(readonly=True)).run_test(size=(160, 48)) as pilot:
        shown = await drawn(pilot)
        told = await press(pilot, "G", "R", "L", "A", "E", "V", "k", "i", "x", "enter", "escape")
        assert "READ-ONLY" in told and "next:" not in told
        steering = (events.Relaunch, events.Stop, events.Signal, events.Input, events.Resize)
        assert not any(isinstance(command, steering) for command in source_of(shown).sent)


async def test_what_is_typed_reaches_the_script_only_after_asking_to_type() -> None:
    async with app().run_test(size=(160, 48)) as pilot:
        shown = await drawn(pilot)
        await press(pilot, "x", "y")
        assert not [c for c in source_of(shown).sent if isinstance(c, events.Input)]
        await press(pilot, "i", "y", "enter", "ctrl+c")
        typed = "".join(c.text for c in source_of(shown).sent if isinstance(c, events.Input))
        assert typed == "y\r\x03"
        assert "still running" not in text_of(shown)


async def test_a_frozen_screen_says_so_and_stays() -> None:
    async with app().run_test(size=(160, 48)) as pilot:
        shown = await drawn(pilot)
        await pilot.press("Z")
        await source_of(shown).more.put([ENDED])
        await pilot.pause(0.3)
        assert "FROZEN" in text_of(shown) and "Run 1 ended" not in text_of(shown)
        await pilot.press("Z")
        await pilot.pause()
        assert "Run 1 ended" in text_of(shown)


async def test_nothing_overlaps_and_the_keys_stay_at_any_size() -> None:
    async with app().run_test(size=(160, 48)) as pilot:
        for size in [(60, 16), (80, 24), (100, 30), (109, 40), (110, 40), (200, 60), (80, 24)]:
            await pilot.resize_terminal(*size)
            shown = await drawn(pilot)
            lines = text_of(shown).splitlines()
            assert "tfmemtop" in lines[0] and "q quit" in lines[-1], size
            regions = [
                panel.region
                for panel in (shown.header, shown.devices, shown.table, shown.lower, shown.why, shown.key_bar)
                if panel.display and panel.region.height
            ]
            assert sum(region.height for region in regions) == size[1], size
            assert "in use" in text_of(shown), size


FROM_OUTSIDE = {
    *("argv", "command", "cwd", "user", "host", "name", "allocator", "message", "operation", "executable"),
    *("python", "tensorflow", "output_path", "largest", "functions", "variables"),
}


def steering(event: events.AnyEvent) -> events.AnyEvent:
    """*event* with what would steer a terminal at the end of every text that is not tfmemtop's own."""

    def more(value: Any) -> Any:
        if isinstance(value, str):
            return value + "\n\x1b[31mred\x07\u202e"
        return [more(item) for item in value] if isinstance(value, list) else value

    changed = {name: more(getattr(event, name)) for name in FROM_OUTSIDE & set(event.__struct_fields__)}
    return msgspec.structs.replace(event, **changed)


async def test_no_text_from_outside_steers_the_terminal() -> None:
    failed = events.OutOfMemory(t=2.5, pid=100, message="OOM", device="GPU:0", requested=2 * GIB, operation="AddV2")
    stream = [steering(event) for event in [*training(), failed] if not isinstance(event, events.Output)]
    async with app(stream).run_test(size=(160, 48)) as pilot:
        screens = {"main": text_of(await drawn(pilot))}
        for keys in (
            ["enter"],
            ["E"],
            ["H"],
            ["W"],
            ["M"],
            ["F"],
            ["F", "enter"],
            ["L"],
            ["V"],
            ["R"],
            ["k"],
            ["f1"],
            ["q"],
        ):
            screens[" ".join(keys)] = await press(pilot, *keys)
            await press(pilot, "escape")
    for name, text in screens.items():
        assert "red" in text, name
        for line in text.splitlines():
            assert line.isprintable(), (name, line)
            assert cell_len(line) == 160, (name, line)
