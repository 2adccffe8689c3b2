"""A process that tfmemtop did not start: how it is chosen, what the screen shows of it, and what the keys do."""

import msgspec

from tests import streams as s
from tests.ui.shown import app, drawn, press, running, source_of, text_of
from tfmemtop import events
from tfmemtop.events import OutsideState
from tfmemtop.ui import UiOptions

GIB = 2**30


def watching() -> list[events.Event]:
    return [
        s.session(command=[]),
        s.device(),
        s.process(0.3, 100, run=None),
        s.alive(1.0, 100),
        s.device_reading(2.0, {100: 2 * GIB}),
    ]


def attached(state: OutsideState = OutsideState.READING, detail: str = "") -> list[events.Event]:
    run = msgspec.structs.replace(s.run(2.1), outside=True)
    told = events.Outside(t=2.2, pid=100, state=state, detail=detail, argv=["python", "train.py"], tensorflow="2.21.0")
    stream: list[events.Event] = [*watching(), run, s.process(2.15, 100), told]
    if state.inside:
        stream += [
            msgspec.structs.replace(s.effective(2.3, 100), growth=None),
            s.allocator(2.4, 100, in_use=GIB // 8, peak=GIB),
        ]
    return stream


async def test_a_and_enter_read_the_chosen_process_of_a_session_that_only_watches() -> None:
    async with running(app(watching())) as (pilot, shown):
        await press(pilot, "a")
        assert events.Attach(pid=100) in source_of(shown).sent
        told = await press(pilot, "enter")
        assert events.Attach(pid=100, if_tensorflow=True) in source_of(shown).sent
        assert "tfmemtop attach PID, reads its allocators" in told


async def test_the_last_line_offers_what_does_something_in_a_session_that_only_watches() -> None:
    async with running(app(watching())) as (pilot, shown):
        bar = text_of(shown).splitlines()[-1]
        keys = "F1 help Enter account a attach o sort k signal W why c moment s scale / filter q quit"
        assert " ".join(bar.split()) == keys
        await pilot.click(shown.main.key_bar, offset=(bar.index("attach"), 0))
        await drawn(pilot)
        assert events.Attach(pid=100) in source_of(shown).sent
        for key in "GLAVE":
            shown.clear_notifications()
            await press(pilot, key)
            told = [note.message for note in shown._notifications]
            assert told == ["There is no script to set anything for: tfmemtop only watches."], key
        await source_of(shown).more.put(attached()[len(watching()) :])
        bar = text_of(await drawn(pilot)).splitlines()[-1]
        assert "M map" in bar and "attach" not in bar and "relaunch" not in bar


async def test_a_session_with_a_script_names_the_command_instead() -> None:
    async with running(app()) as (pilot, shown):
        await press(pilot, "a")
        assert [note.message for note in shown._notifications] == [
            "This session has a script of its own. In another terminal: tfmemtop attach 100"
        ]
        assert not any(isinstance(command, events.Attach) for command in source_of(shown).sent)


async def test_figures_are_marked_and_keys_that_steer_say_why_they_do_nothing() -> None:
    async with running(app(attached(), UiOptions(outside=True))) as (pilot, shown):
        told = await press(pilot, "G", "R", "L", "E", "k", "i", "x")
        assert "FROM OUTSIDE" in told and "Allocators 1, read from outside" in told and "128.0M" in told
        said = [notification.message for notification in shown._notifications]
        assert len(said) == 6 and all("did not start" in text for text in said)
        assert "relaunch" not in told.splitlines()[-1] and "Output" not in told
        steering = (events.Relaunch, events.Stop, events.Signal, events.Input, events.Resize)
        assert not any(isinstance(command, steering) for command in source_of(shown).sent)
        details = await press(pilot, "enter")
        assert "growth —, bfc" in details, "the limit of the pool, which is known, stands above"
        assert "Read from outside" in details and "the script's own calls are seen only by a hook" in details


async def test_what_if_and_holders_say_that_allocations_are_not_seen() -> None:
    for key in "XB":
        async with running(app(attached(), UiOptions(outside=True))) as (pilot, _):
            assert "Allocations are not seen from outside" in await press(pilot, key), key


async def test_leaving_asks_nothing_and_ends_nothing() -> None:
    async with running(app(attached(), UiOptions(outside=True)), (100, 30)) as (pilot, shown):
        await pilot.press("q")
        await pilot.pause()
        assert not any(isinstance(command, events.Stop) for command in source_of(shown).sent)
    assert shown.return_value is not None and not shown.return_value.left_running


async def test_what_stands_in_the_way_is_told_with_what_helps() -> None:
    stream = attached(OutsideState.NO_TABLE, "2.99.0")
    async with app(stream, UiOptions(outside=True)).run_test(size=(160, 48)) as pilot:
        told = text_of(await drawn(pilot))
        assert "it has TensorFlow 2.99.0, whose layout in memory is not known" in told
