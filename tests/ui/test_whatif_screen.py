"""The screen behind the key X: what other settings would do. The setting that is chosen is the next run's."""

from pathlib import Path

import pytest

from tests import pools
from tests import streams as s
from tests.ui.shown import Recorded, app, drawn, paused_replay, press, running, source_of, text_of
from tfmemtop import events
from tfmemtop.ui import UiOptions
from tfmemtop.ui.app import TfmemtopApp

MIB = pools.MIB


def outcome(peak: int, *, fits: bool = True, lacking: int = 0) -> events.Outcome:
    failed = None if fits else 3_711
    operation = "" if fits else "StatefulPartitionedCall/adam/Mul_19"
    pool, asked = peak + 40 * MIB, 24 * MIB
    return events.Outcome(
        fits, 100 * MIB, peak, pool, pool, 4, 20 * MIB, 999, 0, failed, operation, asked=asked, lacking=lacking
    )


def row(growth: bool, limit: int | None, *, fits: bool = True, waits: bool = False) -> events.SettingReplayed:
    if fits and not waits:
        return events.SettingReplayed(growth, True, limit, outcome(200 * MIB))
    failed = outcome(190 * MIB, fits=False, lacking=8 * MIB)
    return events.SettingReplayed(growth, True, limit, failed, outcome(200 * MIB) if fits else failed)


REPLAYED = events.Replayed(
    t=30.0,
    pid=100,
    device="GPU:0",
    events=4045,
    allocations=2048,
    steps=3,
    requested=190 * MIB,
    present=events.SettingReplayed(True, True, None, outcome(300 * MIB)),  # as the readings show
    rows=[
        row(True, 210 * MIB, fits=False),
        row(True, 226 * MIB, waits=True),
        row(True, 239 * MIB),
        row(False, 260 * MIB),
    ],
    smallest=[events.SmallestLimits(True, True, 239 * MIB, 214 * MIB)],
)


def replayed() -> list[events.Event]:
    """Return the events of a session with a table of replayed settings."""
    cuts: list[pools.Cut] = [[(200 * MIB, True), (56 * MIB, False)]]
    return [*pools.watched(cuts), REPLAYED]


async def test_x_shows_what_each_setting_would_do_and_enter_takes_one() -> None:
    async with running(app(replayed()), notifications=True) as (pilot, _):
        told = await press(pilot, "X")
        assert (
            "What if: GPU:0 of process 100 under other settings" in told
            and "It rests on 4,045 events of 3 steps" in told
        )
        for part in ("the present setting", "210M no", "226M perhaps", "239M ~yes", "By the replay alone"):
            assert part in told, part
        assert "adam/Mul_19 asks for 24.0 MiB, 8.0 MiB more than there is in one piece" in await press(pilot, "down")
        told = await press(pilot, "down", "down", "enter")
        assert "next: growth on" not in told.splitlines()[0] or "limit 239.0 MiB" in told.splitlines()[0]
        assert "The next run has growth on, limit 239.0 MiB" in told
        told = await press(pilot, "end", "enter")
        assert "growth off" in told.splitlines()[0] and "260.0 MiB" in told.splitlines()[0]
        assert "Processes" in await press(pilot, "escape")


async def test_of_a_run_that_outgrew_its_trace_no_limit_is_called_enough() -> None:
    stream = [*replayed(), s.allocator(40.0, 100, 300 * MIB, 700 * MIB, 1024 * MIB)]
    async with running(app(stream)) as (pilot, _):
        told = await press(pilot, "X")
        assert "The run later had more: 700.0 MiB in use" in told
        assert "210M no" in told and "the run worked with a pool of 1024M, and at least 214M are needed" in told
        for claimed in ("226M", "239M", "260M", "perhaps", "By the replay alone"):
            assert claimed not in told, claimed


async def test_where_nothing_was_recorded_from_the_start_it_is_said() -> None:
    async with running(app([s.session(), s.run()]), (120, 36)) as (pilot, _):
        await press(pilot, "X")
        assert "No allocations have been recorded from the start of this run" in text_of(await drawn(pilot))


async def test_nothing_is_taken_in_a_replay(tmp_path: Path) -> None:
    source = paused_replay(tmp_path / "r.jsonl", [*pools.watched([[(200 * MIB, True)]]), REPLAYED])
    async with TfmemtopApp(source, UiOptions()).run_test(size=(160, 48), notifications=True) as pilot:
        source.seek(30.0)
        await drawn(pilot)
        told = await press(pilot, "X", "enter")
        assert "nothing in it can be changed" in told and "take for the next run" not in told


@pytest.mark.parametrize("key", ["X", "B"])
async def test_what_was_recorded_until_now_is_read_to_be_replayed(key: str) -> None:
    cuts: list[pools.Cut] = [[(200 * MIB, True), (56 * MIB, False)]]
    async with running(TfmemtopApp(Recorded(pools.watched(cuts)), UiOptions()), (120, 36)) as (pilot, shown):
        told = await press(pilot, key)
        asked = [one for one in source_of(shown).sent if isinstance(one, events.HoldersNow)]
        assert asked == ([events.HoldersNow(pid=100)] if key == "X" else [])
        assert ("until now are being read" in told) is (key == "X")
