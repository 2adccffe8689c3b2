"""The whole screen when keys are pressed: what is sent to the engine, and what the user is told."""

import asyncio
from pathlib import Path

import pytest
from textual.widgets._toast import Toast

from tests import streams as s
from tests.patience import PATIENCE_S
from tests.ui.shown import ENDED, app, drawn, press, running, source_of, text_of, training
from tfmemtop import events
from tfmemtop.help import topics
from tfmemtop.settings import Settings
from tfmemtop.ui import ScreenOutcome, UiOptions


async def test_two_keys_try_another_setting() -> None:
    async with running(app()) as (pilot, shown):
        assert "next: growth on" in await press(pilot, "G")
        asked = await press(pilot, "R")
        assert "Run 1 is still running" in asked and "train.py gets TERM" in asked
        await press(pilot, "r")
        (command,) = [c for c in source_of(shown).sent if isinstance(c, events.Relaunch)]
        assert command.settings == Settings(growth="on") and command.argv == ["python", "train.py"]
        assert "next:" not in text_of(await drawn(pilot))


async def test_a_limit_is_typed_picked_or_refused() -> None:
    async with running(app()) as (pilot, _):
        assert "2048M  ~ a guess: twice the peak in use, 1.0 GiB" in await press(pilot, "L")
        assert "is not a size" in await press(pilot, *"4X", "enter")
        assert "more than GPU 0 has, 140.0 GiB" in await press(pilot, "backspace", "backspace", *"200G", "enter")
        # The command line refuses this size in the same words.
        assert "1 is less than 1 MiB, the smallest" in await press(pilot, "ctrl+u", "1", "enter")
        assert "next: limit 70.0 GiB" in await press(pilot, "ctrl+u", *"50%", "enter")
        assert "next: limit 2.0 GiB" in await press(pilot, "L", "ctrl+u", "down", "enter")


async def test_gpus_and_a_command_line_that_cannot_be_are_refused_with_what_is_wrong() -> None:
    async with running(app()) as (pilot, _):
        assert "'x' is not a list of GPUs" in await press(pilot, "V", "x", "enter")
        assert "there is no GPU 7; choose from 0" in await press(pilot, "ctrl+u", *"0,7", "enter")
        assert "'0,0' names a GPU twice" in await press(pilot, "ctrl+u", *"0,0", "enter")
        assert "next: GPUs 0" in await press(pilot, "ctrl+u", "0", "enter")
        assert "cannot be read: No closing quotation" in await press(pilot, "E", "ctrl+u", *'python "x', "enter")
        assert "there is no command" in await press(pilot, "ctrl+u", *"BATCH=64", "enter")
        assert "next: GPUs 0" in await press(pilot, "escape")


async def test_arguments_are_edited_with_their_environment() -> None:
    async with running(app()) as (pilot, shown):
        await press(pilot, "E", "home", *"BATCH=64 ", "end", *" --epochs 3", "enter")
        await press(pilot, "R", "r")
        (command,) = [c for c in source_of(shown).sent if isinstance(c, events.Relaunch)]
        assert command.argv == ["python", "train.py", "--epochs", "3"]
        assert command.settings.environment == {"BATCH": "64"}


async def test_an_ended_script_is_started_again_without_asking() -> None:
    async with running(app([*training(), ENDED])) as (pilot, shown):
        assert "Run 1 ended with exit code 3" in text_of(shown)
        await press(pilot, "R")
        assert isinstance(source_of(shown).sent[-1], events.Relaunch)


async def test_the_help_shows_the_keys_and_turns_to_the_other_pages_of_the_manual() -> None:
    async with running(app(), (80, 40)) as (pilot, _):
        assert "relaunch: end the run, wait until its memory is free, start" in await press(pilot, "f1")
        others = [name for name in topics() if name != "keys"]
        assert f"tfmemtop help {others[0]}" in await press(pilot, "right")
        assert f"tfmemtop help {others[1]}" in await press(pilot, "tab")
        assert "tfmemtop help keys" in await press(pilot, "left", "left")
        assert "help keys" not in await press(pilot, "escape")


async def test_quitting_asks_what_becomes_of_the_script() -> None:
    async with running(app()) as (pilot, shown):
        asked = await press(pilot, "q")
        assert "leave it running" in asked and "/home/ada/abcde.log" in asked
        await press(pilot, "escape")
        assert shown.is_running
        await press(pilot, "ctrl+c")
        assert "The script is still running" in text_of(shown)
        await pilot.press("l")
        await pilot.pause()
        assert shown.return_value == ScreenOutcome(0, left_running=True)
        assert isinstance(source_of(shown).sent[-1], events.Leave)


async def test_stopping_it_waits_for_its_end_and_gives_its_exit_code() -> None:
    async with running(app()) as (pilot, shown):
        await press(pilot, "q", "s")
        stop = source_of(shown).sent[-1]
        assert isinstance(stop, events.Stop) and stop.quit
        assert shown.is_running
        gone: asyncio.Queue[list[events.Event] | None] = source_of(shown).more
        await gone.put([events.Stopping(t=3.0, run=1, phase=events.StoppingPhase.TERM, deadline=13.0)])
        assert "killed in 10 s" in text_of(await drawn(pilot))
        await gone.put([events.RunEnd(t=4.0, run=1, exit_code=None, signal=15)])
        await gone.put(None)
        await pilot.pause()
        assert shown.return_value == ScreenOutcome(143)
        assert not shown.state.notices, "an engine that was asked to end has not ended unexpectedly"


async def test_an_engine_that_vanishes_is_told() -> None:
    async with running(app()) as (pilot, shown):
        await source_of(shown).more.put(None)
        told = text_of(await drawn(pilot))
        assert "The engine has ended unexpectedly" in told and "ENGINE GONE" in told


async def test_a_notification_that_ends_while_it_is_drawn_does_not_stop_the_screen() -> None:
    async with running(app(options=UiOptions(readonly=True))) as (pilot, shown):
        await press(pilot, "G")
        (notification,) = shown._notifications
        notification.raised_at -= notification.timeout
        await shown.screen.mount(Toast(notification))
        assert "READ-ONLY" in await press(pilot, "G")


async def test_read_only_changes_nothing() -> None:
    async with running(app(options=UiOptions(readonly=True))) as (pilot, shown):
        for key in "GRLAEVki":
            shown.clear_notifications()
            await press(pilot, key)
            (notification,) = shown._notifications
            assert "This screen is read-only" in notification.message, key
        told = await press(pilot, "x", "enter", "escape")
        assert "READ-ONLY" in told and "next:" not in told
        steering = (events.Relaunch, events.Stop, events.Signal, events.Input, events.Resize)
        assert not any(isinstance(command, steering) for command in source_of(shown).sent)


async def test_what_is_typed_reaches_the_script_only_after_asking_to_type() -> None:
    async with running(app()) as (pilot, shown):
        await press(pilot, "x", "y")
        assert not [c for c in source_of(shown).sent if isinstance(c, events.Input)]
        await press(pilot, "i", "y", "enter", "ctrl+c")
        typed = "".join(c.text for c in source_of(shown).sent if isinstance(c, events.Input))
        assert typed == "y\r\x03"
        assert "still running" not in text_of(shown)


async def test_a_toast_shows_the_keys_that_it_names() -> None:
    without_gpu = [event for event in training() if not isinstance(event, events.Device | events.DeviceReading)]
    async with running(app(without_gpu), (120, 36), notifications=True) as (pilot, _):

        async def toast() -> str:
            while "Growth is" not in (told := text_of(await drawn(pilot))):
                pass
            return told

        await press(pilot, "G")
        assert "[L]" in await asyncio.wait_for(toast(), PATIENCE_S)


async def test_while_one_types_the_key_bar_has_the_keys_of_that() -> None:
    async with running(app(), (80, 24)) as (pilot, _):
        bar = (await press(pilot, "i")).splitlines()[-1]
        assert "Ctrl-] stop typing" in bar and "Ctrl-C and all else go to the script" in bar and "quit" not in bar
        bar = (await press(pilot, "ctrl+right_square_bracket")).splitlines()[-1]
        assert "q quit" in bar and "typing" not in bar
        bar = (await press(pilot, "f4")).splitlines()[-1]
        assert "Enter keep the filter" in bar and "quit" not in bar
        assert "q quit" in (await press(pilot, "escape")).splitlines()[-1]


async def test_every_key_of_the_bar_is_there_where_there_is_room_and_the_help_and_the_way_out_always() -> None:
    async with app().run_test(size=(160, 48)) as pilot:
        bar = text_of(await drawn(pilot)).splitlines()[-1]
        assert all(f" {key} " in bar for key in "RGLAVEHFWOMs/q")

        async def bar_with_quit() -> str:
            while "q quit" not in (bar := text_of(await drawn(pilot)).splitlines()[-1]):
                pass  # the bar is laid out anew after the screen
            return bar

        for columns in (60, 80, 120):
            await pilot.resize_terminal(columns, 24)
            bar = await asyncio.wait_for(bar_with_quit(), PATIENCE_S)
            assert "F1 help" in bar
        assert "F fit" in bar


@pytest.mark.programs
async def test_the_page_of_the_session_so_far_goes_into_a_new_file_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recording = s.written(tmp_path / "now.jsonl", [*training(), ENDED])
    async with running(app(options=UiOptions(recording=lambda _: recording)), (120, 36)) as (pilot, shown):
        await press(pilot, "S")
        await shown.workers.wait_for_complete(worker for worker in shown.workers if worker.group == "page")
        page = tmp_path / "now.html"
        assert page.stat().st_mode & 0o777 == 0o600 and "ended with exit code 3" in page.read_text()
        assert str(page) in next(iter(shown._notifications)).message


async def test_without_a_recording_there_is_no_page_and_the_user_is_told() -> None:
    async with running(app(options=UiOptions(recording=lambda _: None)), (120, 36)) as (pilot, shown):
        await press(pilot, "S")
        assert "this session has none" in next(iter(shown._notifications)).message


async def test_a_frozen_screen_says_so_and_stays() -> None:
    async with running(app()) as (pilot, shown):
        await pilot.press("Z")
        await source_of(shown).more.put([ENDED])
        while not source_of(shown).more.empty():
            await pilot.pause()
        await pilot.pause()
        assert "FROZEN" in text_of(shown) and "Run 1 ended" not in text_of(shown)
        await pilot.press("Z")
        await pilot.pause()
        assert "Run 1 ended" in text_of(shown)
