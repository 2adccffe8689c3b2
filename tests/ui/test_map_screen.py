"""The screen behind the key M, which shows the inside of a pool: its keys, at every size, live and in a replay.

The tests also check what it requests from the engine.
"""

from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot

from tests import pools
from tests import streams as s
from tests.pools import MIB
from tests.ui import held
from tests.ui.shown import app, drawn, paused_replay, press, running, source_of, text_of
from tests.windows import Window
from tfmemtop import events
from tfmemtop.events import ProbeState
from tfmemtop.state.pool_views import pool_map
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.draw import chunk_map, map_figures
from tfmemtop.ui.panels.map_panel import MapPanel

IMPLAUSIBLE = events.Distrust(events.Fault.IMPLAUSIBLE, figures=[1, 2, 3, 4, 5])
CUTS: list[pools.Cut] = [
    [(2 * MIB, True)],
    [(MIB, True), (3 * MIB, False)],
    [(6 * MIB, True), (MIB, False), (MIB, True)],
]


def wishes(pilot: Pilot[ScreenOutcome]) -> list[tuple[str, float | None, int | None]]:
    assert isinstance(pilot.app, TfmemtopApp)
    sent = [one for one in source_of(pilot.app).sent if isinstance(one, events.MapWanted)]
    return [(one.device, one.pace_s, one.region) for one in sent]


async def test_m_shows_the_pool_from_inside_and_esc_goes_back() -> None:
    async with running(app(pools.watched(CUTS))) as (pilot, _):
        told = await press(pilot, "M")
        for part in (
            "Pool of GPU:0, GPU_0_bfc, process 100",
            "pool 14.0 MiB",
            "in use 10.0 MiB",
            "cached 4.0 MiB",
            "largest free 3.0 MiB",
            "fragmentation 25%",
            "chunks 6 (4 in use)",
            "read in 135 µs, every 1.0 s",
            "region 3 at 6.0M, taken at 00:04, 8.0M, 88% full",
            "Number of chunks by size",
            "Biggest chunks in use",
            "How the pool grew",
        ):
            assert part in told
        assert "Processes" not in told
        assert "Processes" in await press(pilot, "escape")


async def test_only_what_is_looked_at_is_read() -> None:
    async with running(app(pools.watched(CUTS))) as (pilot, _):
        assert wishes(pilot) == [("GPU:0", 1.0, None)]  # the strip in the allocators' panel needs it
        await press(pilot, "P")
        assert wishes(pilot)[1:] == [("GPU:0", None, None)]
        await press(pilot, "M")
        assert wishes(pilot)[2:] == [("GPU:0", 1.0, None)]
        await press(pilot, "up", "enter")
        assert wishes(pilot)[3:] == [("GPU:0", 1.0, pools.BASE + 2**40)]
        await press(pilot, "escape")
        assert wishes(pilot)[4:] == [("GPU:0", 1.0, None)]
        await press(pilot, "escape")
        assert wishes(pilot)[5:] == [("GPU:0", None, None)]


async def test_a_process_that_has_ended_is_not_asked() -> None:
    ended = [*pools.watched(CUTS), events.HookEnd(t=31.0, pid=100, reason=events.HookEnding.EXIT)]
    async with running(app(ended)) as (pilot, _):
        assert "as it was last, at 00:29" in await press(pilot, "M")
        assert wishes(pilot) == []


async def test_a_region_is_looked_at_alone_and_cell_by_cell() -> None:
    async with running(app(pools.watched(CUTS))) as (pilot, shown):
        await press(pilot, "M", "up")
        assert "region 2 at 2.0M" in text_of(shown)
        await press(pilot, "z")
        await source_of(shown).more.put([pools.memory_map(31.0, CUTS, zoom=1)])
        told = text_of(await drawn(pilot))
        assert "region 2 alone" in told and "a cell is 2.0K" in told and "+0B" in told


async def test_tab_goes_to_the_next_pool() -> None:
    stream: list[events.Event] = [
        *pools.watched(CUTS),
        s.effective(1.3, 100, name="GPU:1"),
        s.allocator(30.0, 100, in_use=MIB, pool=2 * MIB, name="GPU:1"),
        pools.memory_map(30.0, [[(MIB, True), (MIB, False)]], device="GPU:1"),
    ]
    async with running(app(stream)) as (pilot, _):
        assert "Tab GPU:1" in await press(pilot, "M")
        told = await press(pilot, "tab")
        assert "Pool of GPU:1 on GPU 0" in told and "pool 2.0 MiB" in told
        assert wishes(pilot)[-2:] == [("GPU:0", None, None), ("GPU:1", 1.0, None)]
        assert "Pool of GPU:0" in await press(pilot, "left")


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (events.MemoryMap(t=30.0, pid=100, device="GPU:0", mapless=events.Mapless.ASYNC), "cuda_malloc_async"),
        (
            events.MemoryMap(t=30.0, pid=100, device="GPU:0", damage=events.Damage.CUT_SHORT),
            "cannot be read: its end is missing",
        ),
        (events.Probe(t=9.0, pid=100, state=ProbeState.UNAVAILABLE, unbuilt=held.NO_COMPILER), "install g++"),
        (events.Probe(t=9.0, pid=100, state=ProbeState.FAILED, distrust=IMPLAUSIBLE), "its figures are impossible"),
    ],
)
async def test_where_there_is_no_map_it_is_said_why_and_what_helps(event: events.Event, told: str) -> None:
    async with app([*pools.watched(CUTS)[:-1], event]).run_test(size=(120, 36)) as pilot:
        assert told in text_of(await drawn(pilot))  # in the allocators' panel, in one line
        assert "No map: " in await press(pilot, "M") and told in text_of(await drawn(pilot))


async def test_the_map_of_the_failure_is_one_key_away() -> None:
    full = pools.memory_map(40.0, [[(2 * MIB, True)]], out_of_memory=True)
    async with running(app([*pools.watched(CUTS), full])) as (pilot, _):
        assert "o as memory ran out" in await press(pilot, "M")
        told = await press(pilot, "o")
        assert "when an allocation failed, 00:39" in told and "in use 2.0 MiB" in told and "o now" in told
        assert "in use 10.0 MiB" in await press(pilot, "o")


async def test_of_a_process_that_has_gone_the_failure_is_shown_first() -> None:
    full = pools.memory_map(40.0, [[(2 * MIB, True)]], out_of_memory=True)
    gone = events.HookEnd(t=41.0, pid=100, reason=events.HookEnding.LOST)
    async with running(app([*pools.watched(CUTS), full, gone])) as (pilot, _):
        assert "when an allocation failed, 00:39" in await press(pilot, "M")


async def test_the_next_runs_pool_takes_the_place_of_the_last() -> None:
    async with running(app(pools.watched(CUTS))) as (pilot, shown):
        await press(pilot, "M")
        ended = events.RunEnd(t=31.0, run=1, exit_code=0, signal=None)
        fresh: list[events.Event] = [
            s.run(32.0, number=2, pid=200),
            s.hook(33.0, 200),
            s.allocator(34.0, 200, in_use=MIB),
        ]
        await source_of(shown).more.put([ended, s.alive(31.5, 7), *fresh])
        assert "process 200" in text_of(await drawn(pilot))
        assert wishes(pilot)[-1] == ("GPU:0", 1.0, None)


async def test_scrubbing_a_replay_shows_each_moments_map(tmp_path: Path) -> None:
    later = pools.memory_map(40.0, [[(14 * MIB, True)]])
    source = paused_replay(tmp_path / "r.jsonl", [*pools.watched(CUTS, t=20.0), later])
    async with TfmemtopApp(source, UiOptions()).run_test(size=(160, 48)) as pilot:
        source.seek(25.0)
        await drawn(pilot)
        assert "in use 10.0 MiB" in await press(pilot, "M")
        for _ in range(3):
            await pilot.press("right")
        told = text_of(await drawn(pilot))
        assert "as of 00:39" in told and "in use 14.0 MiB" in told and "00:00:40" in told
        assert "in use 10.0 MiB" in await press(pilot, "left")


async def test_cells_are_drawn_by_who_holds_them_and_the_one_under_the_cursor_is_named() -> None:
    async with running(app(held.training())) as (pilot, _):
        told = await press(pilot, "M", "up")
        assert "V variables  O optimizer  I input  A activations  G gradients  L loss  ? unknown" in told
        assert "VVVVVOOOOO" in told and "AAAAa" in told and "?????" in told
        assert "from a window 12 s before this map" in told
        told = await press(pilot, "right")
        assert (
            "V variables  functional/embedding/embeddings  12.0M  float32[3072,1024]  from before the windows" in told
        )
        places = await cells_of(pilot, "A")
        assert "A activations  functional_1/embedding_1/Gather  3.0M  float32[24,32768]  in each step" in places
        free = await cells_of(pilot, "·")
        assert "free, between " in free or "nothing else stays in use here" in free
        assert "partly in use" not in told and " in use █" not in told
        assert "partly" in await press(pilot, "b") and "VVVVV" not in text_of(await drawn(pilot))
        assert "Who holds a cell is known" in await press(pilot, "b", "down")


async def cells_of(pilot: Pilot[ScreenOutcome], letter: str) -> str:
    """Move the cursor to the first cell that is drawn as *letter*, and return the screen's text."""
    shown = pilot.app
    panel = shown.focused
    assert isinstance(shown, TfmemtopApp) and isinstance(panel, MapPanel)
    drawn_cells = "".join(line.split("▏", 1)[1][:76] for line in text_of(shown).splitlines() if "▏" in line)
    at = drawn_cells.index(letter)
    panel.holders.cursor = at
    return await press(pilot, "left", "right")


async def test_what_a_leak_keeps_in_a_region_has_its_name_beside_the_hole() -> None:
    window = Window(number=5)
    window.allocate(4 * MIB, f"{held.CALL}functional_1/head_1/Tensordot", shape=[1024, 1024], dtype="float32")
    hole = window.allocate(8 * MIB, f"{held.CALL}functional_1/up_1/Gelu")
    window.allocate(2 * MIB, f"{held.CALL}compile_loss/mse/Mean", shape=[], dtype="float32")
    window.free(hole)
    cut = [(4 * MIB, True), (8 * MIB, False), (2 * MIB, True)]
    async with running(app([*pools.watched([cut]), window.done(29.5)])) as (pilot, _):
        told = await press(pilot, "M", "right")
        assert "A activations  functional_1/head_1/Tensordot  4.0M  float32[1024,1024]  since 00:29" in told
        told = await cells_of(pilot, "·")
        assert "free, between A functional_1/head_1/Tensordot 4.0M and L compile_loss/mse/Mean 2.0M" in told


def test_all_of_a_large_pool_is_shown_in_little_room() -> None:
    view = pool_map(s.fold(pools.watched(pools.doubling(11))), (100, "GPU:0"))
    assert view is not None
    wide = chunk_map.arrange(view.regions, 100, 40)
    assert wide.merged == 1 and sum(len(row.cells) for row in wide.rows) == len(b"".join(r.cells for r in view.regions))
    narrow = chunk_map.arrange(view.regions, 40, 12)
    assert len(narrow.rows) <= 12 and narrow.merged > 1 and narrow.cell_bytes > wide.cell_bytes


def test_once_the_pool_has_grown_the_figures_of_an_older_map_are_blank() -> None:
    view = pool_map(s.fold(pools.watched(pools.doubling(11))), (100, "GPU:0"))
    assert view is not None
    fresh, grown = (
        "".join(part.text for line in map_figures.inside(view, reading, 100) for part in line)
        for reading in (
            s.allocator(9.0, 100, 1, pool=view.read.pool),
            s.allocator(9.0, 100, 1, pool=view.read.pool + 1),
        )
    )
    assert "—" not in fresh and "largest free —  fragmented —" in grown


def test_after_the_process_has_ended_the_figures_of_an_older_map_have_its_time() -> None:
    view = pool_map(s.fold(pools.watched(pools.doubling(11))), (100, "GPU:0"))
    assert view is not None
    reading = s.allocator(99.0, 100, view.read.in_use, pool=view.read.pool)
    same, other = (
        "".join(part.text for line in map_figures.inside(view, at_end, 100, ended=True) for part in line)
        for at_end in (reading, msgspec.structs.replace(reading, in_use=0))
    )
    assert "map of" not in same and f"map of {chunk_map.clock(view.at_s)}" in other
