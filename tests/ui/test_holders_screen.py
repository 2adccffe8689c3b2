"""The screen behind the key B, which shows what holds the memory: its keys, at every size, live and in a replay.

The tests also check what it requests from the engine.
"""

import re
from pathlib import Path

import msgspec
import pytest

from tests import pools
from tests import streams as s
from tests.ui import held
from tests.ui.shown import app, drawn, paused_replay, press, running, source_of, text_of
from tfmemtop import events
from tfmemtop.events import ProbeState
from tfmemtop.ui import UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.panels.holders_panel import HoldersPanel


def panel_of(shown: TfmemtopApp) -> HoldersPanel:
    assert isinstance(shown.focused, HoldersPanel)
    return shown.focused


async def test_b_shows_who_holds_the_peak_and_esc_goes_back() -> None:
    async with running(app(held.training())) as (pilot, shown):
        told = await press(pilot, "B")
        for part in (
            "Holders of GPU:0, process 100",
            "window 3 of 3, 12 s old",
            "peak 300.8 MiB, made by gradient_tape/functional_1/head_1/Tensordot/MatMul/MatMul_1",
            "opened by schedule",
            "step of train_step",
            "300.8 MiB at the peak, by layer",
            "O optimizer 128.0M  A activations 90.0M  V variables 64.0M",
            "sum  20 rows",
        ):
            assert part in told, part
        choice = panel_of(shown).choice
        assert choice.window is not None
        listed = choice.standing(choice.window)
        assert sum(row.bytes for row in listed.rows) == listed.total == choice.window.peak
        assert "Processes" not in told
        assert "Processes" in await press(pilot, "escape")


async def test_a_key_groups_by_layer_operation_kind_shape_and_line() -> None:
    async with running(app(held.training())) as (pilot, _):
        assert re.search(r"▸ head +O A V G +63\.0M", await press(pilot, "B"))
        assert re.search(r"▸ functional_1/head_1/Tensordot +A activations +15\.0M", await press(pilot, "g"))
        assert re.search(r"▸ optimizer +128\.0M .* 43% ", await press(pilot, "g"))
        assert re.search(r"float32\[1024,1024\] +O V +96\.0M", await press(pilot, "g"))
        assert re.search(r"projects/train\.py:24 +A activations +36\.0M", await press(pilot, "g"))
        assert "by layer" in await press(pilot, "g")


async def test_enter_opens_a_rows_parts_with_the_scripts_line_and_esc_closes_them() -> None:
    async with running(app(held.training())) as (pilot, _):
        await press(pilot, "B", "down", "down")
        told = await press(pilot, "enter")
        assert re.search(r"9\.0M ×1 +float32\[24,98304\] +output +functional_1/mlp0up_1/Gelu +train\.py:24", told)
        told = await press(pilot, "down", "down")
        assert "train.py:24  x = layers.Dense(4 * width" in told or "mlp0up_kernel" in told
        assert "Gelu" not in await press(pilot, "escape")
        assert "Holders of" in text_of(await drawn(pilot))


async def test_the_cursor_goes_through_the_step_and_the_rows_with_it() -> None:
    async with running(app(held.training())) as (pilot, shown):
        await press(pilot, "B")
        told = await press(pilot, *["right"] * 6)
        assert "into the window, by layer" in told and "p peak" in told
        assert re.search(r"(takes|gives back) \d+\.\d MiB", told)
        choice = panel_of(shown).choice
        assert choice.window is not None and choice.at is not None and choice.at > choice.window.peak_at
        listed = choice.standing(choice.window, choice.at)
        assert listed.total < choice.window.peak and listed.unknown == 0
        # A window that arrives meanwhile does not replace the one that is shown.
        await source_of(shown).more.put([held.step(4).done(31.0)])
        assert "window 3 of 4" in text_of(await drawn(pilot))
        assert "window 3 of 4" in await press(pilot, "p")  # the highest peak
        assert "at the peak" in await press(pilot, "left_square_bracket", "right_square_bracket")
        assert "at the peak" in await press(pilot, "left", "escape")


async def test_each_buffer_is_a_bar_from_its_allocation_to_its_release() -> None:
    async with running(app(held.training()), (120, 36)) as (pilot, shown):
        told = await press(pilot, "B", "l")
        assert "Buffers, from allocation to release" in told and "l table" in told and "Enter parts" not in told
        rows = {line[4:].split("  ")[0]: line for line in told.splitlines()}
        peak = rows["BUFFER"].index("▼")
        assert told.splitlines()[4].index("▼") == peak  # of the graph, which has the same time
        assert rows["…/embedding/embeddings"].endswith("12.0M " + "█" * 80)  # older than the window, and stays
        assert rows["head/MatMul_1"][peak - 1 : peak + 1] == " █"  # made the peak
        assert rows["head/Mul_1"][peak] == "┊" and "█" in rows["head/Mul_1"][peak:]
        while "▸ A mlp0up/Gelu" not in told:
            told = await press(pilot, "down")
        assert re.search(r"\d+ µs to [56]\.\d ms +float32\[24,98304\] +\S+/Gelu +train\.py:24  x = layers", told)
        assert " train.py:61 <module> > train.py:40 build > train.py:24 block" in map(str.rstrip, told.splitlines())
        assert panel_of(shown).choice.at is None
        told = await press(pilot, "left")
        at = panel_of(shown).choice.at
        assert at is not None and "│" in next(line for line in told.splitlines() if "head/Mul_1" in line)
        assert "by layer" in await press(pilot, "l")


async def test_a_window_is_asked_for_now() -> None:
    async with running(app(held.training()), notifications=True) as (pilot, shown):
        assert "The next step will be recorded" in await press(pilot, "B", "n")
        assert source_of(shown).sent[-1] == events.HoldersNow(pid=100)


async def test_a_read_only_screen_and_an_ended_process_are_not_asked() -> None:
    async with running(app(held.training(), UiOptions(readonly=True)), notifications=True) as (pilot, shown):
        assert "read-only" in await press(pilot, "B", "n")
        assert not [one for one in source_of(shown).sent if isinstance(one, events.HoldersNow)]
    ended = [*held.training(), events.HookEnd(t=31.0, pid=100, reason=events.HookEnding.EXIT)]
    async with running(app(ended), notifications=True) as (pilot, shown):
        assert "This process has ended" in await press(pilot, "B", "n")
        assert not [one for one in source_of(shown).sent if isinstance(one, events.HoldersNow)]


async def test_in_a_replay_the_arrows_move_the_replay_and_brackets_the_cursor(tmp_path: Path) -> None:
    source = paused_replay(tmp_path / "r.jsonl", held.training())
    async with TfmemtopApp(source, UiOptions()).run_test(size=(160, 48), notifications=True) as pilot:
        source.seek(30.0)
        await drawn(pilot)
        assert "[ ] moment" in await press(pilot, "B")
        assert "into the window" in await press(pilot, *["right_square_bracket"] * 5)
        told = await press(pilot, "n")
        assert "no new one can be asked for" in told and "n now" not in told
        assert "window 1 of 1" in await press(pilot, "p", *["left"] * 4)


ASYNC = [
    msgspec.structs.replace(event, allocator="cuda_malloc_async") if isinstance(event, events.Effective) else event
    for event in pools.watched([[(pools.MIB, True)]])
]
NONE = [event for event in pools.watched([[(pools.MIB, True)]]) if not isinstance(event, events.Probe)]
UNAVAILABLE = events.Probe(t=9.0, pid=100, state=ProbeState.UNAVAILABLE, unbuilt=held.NO_COMPILER)
NOT_ASKED = [
    msgspec.structs.replace(event, holders_interval_s=0.0) if isinstance(event, events.Session) else event
    for event in NONE
]
REFUSED = msgspec.structs.replace(held.step(1).done(9.0), damage=events.Damage.CUT_SHORT, packed=b"")

PROFILED = msgspec.structs.replace(REFUSED, damage=None, windowless=events.Windowless.PROFILER)


@pytest.mark.parametrize(
    ("stream", "told"),
    [
        (ASYNC, "cuda_malloc_async does not tell who holds its memory"),
        ([*NONE, UNAVAILABLE], "not in use here: there is no C++ compiler"),
        ([*NONE, events.Probe(t=9.0, pid=100, state=ProbeState.BUILDING)], "being built or loaded"),
        ([*NONE, REFUSED], "the file of the window cannot be read: its end is missing."),
        ([*NONE, PROFILED], "There is no window: the script's own profiler is on."),
        (NOT_ASKED, "No window is opened automatically: the session was started with --holders-interval 0."),
        ([*NOT_ASKED, events.HookEnd(t=31.0, pid=100, reason=events.HookEnding.EXIT)], "before a window was asked for"),
        (pools.watched([[(pools.MIB, True)]]), "No window has been recorded yet"),
        ([*NONE, events.HookEnd(t=31.0, pid=100, reason=events.HookEnding.EXIT)], "ended before a window was recorded"),
    ],
)
async def test_where_there_is_no_window_it_is_said_why(stream: list[events.Event], told: str) -> None:
    async with running(app(stream), (160, 36)) as (pilot, _):
        text = await press(pilot, "B")
        assert told in text and "tfmemtop records each allocation of one step of the script" in text


async def test_what_is_not_known_is_a_row_with_the_reason() -> None:
    window = held.step(2)
    for _ in range(3):
        window.allocate(pools.MIB * 64)
    lost = msgspec.structs.replace(window.done(18.0, unknown=5 * pools.MIB), lost=7)
    async with running(app([*held.training([held.step(1)]), lost])) as (pilot, _):
        told = await press(pilot, "B", "end")
        assert re.search(r"unknown: no name, 7 events lost +\? unknown +197\.0M .* 3 *\n", told)
        assert re.search(r"sum  14 rows 192\.0 MiB \+ unknown 197\.0 MiB +389\.0M", told)
        assert "192.0M ×3" in await press(pilot, "enter")


async def test_tab_goes_to_the_next_pool_and_m_to_its_map() -> None:
    stream = [
        *held.training(),
        s.effective(1.3, 100, name="GPU:1"),
        s.allocator(30.0, 100, in_use=pools.MIB, name="GPU:1"),
        held.step(1, device="GPU:1").done(29.0),
    ]
    async with running(app(stream)) as (pilot, _):
        assert "Tab GPU:1" in await press(pilot, "B")
        assert "Holders of GPU:1" in await press(pilot, "tab")
        assert "Pool of GPU:1" in await press(pilot, "M")
        assert "Holders of GPU:1" in await press(pilot, "B")
        assert "Processes" in await press(pilot, "escape")


async def test_a_click_chooses_a_row_opens_it_and_sets_the_cursor() -> None:
    async with running(app(held.training()), (120, 36)) as (pilot, shown):
        lines = (await press(pilot, "B")).splitlines()
        row = next(at for at, line in enumerate(lines) if line.startswith("  embedding"))
        await pilot.click(offset=(4, row))
        assert "▸ embedding" in text_of(await drawn(pilot))
        await pilot.click(offset=(4, row))
        assert "embedding/embeddings" in text_of(await drawn(pilot))
        await pilot.click(offset=(100, 6))
        assert "into the window" in text_of(await drawn(pilot))
        assert panel_of(shown).choice.at is not None


@pytest.mark.parametrize("closed", [events.Closed.STEP, events.Closed.TIME])
async def test_a_window_without_a_whole_step_says_why_it_ended(closed: events.Closed) -> None:
    window = held.step(1).done(9.0)
    for steps in (1.0, None):
        shown = msgspec.structs.replace(window, closed=closed, steps=steps)
        async with running(app([*NONE, shown]), (160, 36)) as (pilot, _):
            text = await press(pilot, "B")
            short = steps is None and closed is not events.Closed.STEP
            assert "peak" in text and ("no whole step: " in text) == short
