"""Small terminals and screens with little to show, and the size of the script's terminal.

The latter is its panel's size from the start. The user can change it. Readings change it only once it no longer fits.
"""

import pytest

from tests import streams as s
from tests.streams import fold
from tests.ui.shown import (
    ENDED,
    GIB,
    app,
    drawn,
    events_until,
    press,
    replay,
    rows,
    running,
    screen,
    source_of,
    text_of,
)
from tfmemtop import events
from tfmemtop.state import apply
from tfmemtop.state.pool_views import allocators
from tfmemtop.ui import UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.draw.layout import first_size
from tfmemtop.ui.panels.allocator_panel import allocator_table

SIZES = [(40, 12), (160, 48)]


async def lines(app: TfmemtopApp, size: tuple[int, int]) -> list[str]:
    async with running(app, size) as (pilot, _):
        shown = text_of(await drawn(pilot))
        assert app.screen.max_scroll_y == 0, "a scrollbar"
        return shown.splitlines()


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_run_memory_process_and_keys_are_seen_at_every_size(size: tuple[int, int]) -> None:
    shown = await lines(TfmemtopApp(replay("h200-settings", 44.0), UiOptions()), size)
    assert len(shown) == size[1]
    assert "train.py" in shown[0] and "run 2" in shown[0]
    assert "1.1 of 140.4 GiB" in shown[2]
    (row,) = [line for line in shown if line.startswith(" ●") and " 2751 " in line]
    assert "1.1G" in row and "96.8M" in row and "train.py" in row
    assert "211/226" in "\n".join(shown)
    assert "quit" in shown[-1]


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_without_a_gpu_a_plain_run_says_at_every_size_why_there_is_no_pool(size: tuple[int, int]) -> None:
    told = " ".join(" ".join(await lines(screen("cpu-plain", 6.0), size)).split())
    assert "malloc" in told and "no pool to see" in told and "--cpu-pool 4G" in told and "[L]" in told


async def test_it_says_so_before_tensorflow_is_imported_and_after_the_end() -> None:
    before = " ".join(" ".join(await lines(screen("cpu-plain", 0.1), (80, 24))).split())
    assert "has not imported TensorFlow yet" in before and "--cpu-pool 4G" in before
    after = " ".join(" ".join(await lines(screen("cpu-plain", 20.0), (80, 24))).split())
    assert "computed on the CPU" in after and "--cpu-pool 4G" in after


@pytest.mark.parametrize(("t", "ended"), [(33.0, False), (40.0, True)])
async def test_the_header_and_the_cpu_pool_agree_on_whether_the_process_has_ended(t: float, ended: bool) -> None:
    shown = await lines(screen("cpu-holders", t), (120, 36))  # its hook ends at 30.8 s, its process at 38.0 s
    assert ("■ ended" in shown[0]) == ended and ("● running" in shown[0]) == (not ended)
    assert ("CPU pool, as it was when its process ended" in "\n".join(shown)) == ended


@pytest.mark.parametrize("t", [20.0, 1000.0])
async def test_an_empty_output_leaves_its_room_to_the_processes_of_four_cards(t: float) -> None:
    shown = await lines(screen("h200-four-cards", t), (80, 24))
    rows = [line.split()[1] for line in shown if "mirrored.py 8" in line and "1211" in line]
    assert rows == ["0", "1", "2", "3"]


async def test_allocators_without_a_pool_take_no_more_lines_than_they_have_text_for() -> None:
    shown = await lines(screen("cpu-kernel-1", 3.0), (80, 40))
    title = next(at for at, line in enumerate(shown) if "── Allocators" in line)
    assert "has not imported TensorFlow yet" in shown[title + 1] and "── Why" in shown[title + 2]


@pytest.mark.parametrize("height, seen", [(6, 5), (5, 3)])
def test_allocators_that_have_no_line_are_counted(height: int, seen: int) -> None:
    pools = allocators(fold(events_until("h200-four-cards", 20.0)))
    drawn = rows(allocator_table(pools, 80, height))
    assert len(drawn) <= height and sum("_bfc" in line for line in drawn) == seen
    assert (drawn[-1].strip() == f"… {5 - seen} more") == (seen < 5)


@pytest.mark.parametrize(("height", "stays"), [(24, False), (36, True)])
async def test_a_note_that_does_not_change_leaves_a_low_screen_after_ten_seconds(height: int, stays: bool) -> None:
    app = screen("cpu-demo", 60.0)
    async with app.run_test(size=(80, height)) as pilot:
        assert "No NVIDIA driver here" in text_of(await drawn(pilot))
        await source_of(app).more.put([event for event in events_until("cpu-demo", 72.0) if event.t > 60.0])
        shown = text_of(await drawn(pilot))
        assert ("No NVIDIA driver here" in shown) == stays
        assert "W why" in shown


def started(size: tuple[int, int], gpus: int) -> list[events.Event]:
    """Return the events that a screen receives first.

    The terminal has the first size of a screen of *size*, columns and rows. No GPU has been read yet.
    """
    columns, rows = first_size(*size, gpus)
    return [s.session(), events.Terminal(t=0.0, columns=columns, rows=rows), s.run(), s.process(0.3, 100)]


def readings(gpus: int) -> list[events.Event]:
    found: list[events.Event] = [s.device(index) for index in range(gpus)]
    found += [s.alive(1.0, 100), events.Output(t=1.0, run=1, text="hello")]
    if gpus:
        found += [s.hook(1.1, 100), s.effective(1.2, 100)]
        found += [s.device_reading(2.0, {100: 2 * GIB}), s.allocator(2.1, 100, in_use=GIB // 8, peak=GIB)]
    return found


def take(shown: TfmemtopApp, *news: events.Event) -> None:
    for event in news:
        apply(shown.state, event)


def told(shown: TfmemtopApp) -> list[tuple[int, int]]:
    return [(c.columns, c.rows) for c in source_of(shown).sent if isinstance(c, events.Resize)]


@pytest.mark.parametrize(("size", "gpus"), [((80, 24), 2), ((111, 37), 0)], ids=str)
async def test_the_first_size_lasts_while_devices_processes_and_a_finding_come(
    size: tuple[int, int], gpus: int
) -> None:
    async with running(app(started(size, gpus)), size) as (pilot, shown):
        take(shown, *readings(gpus))
        await drawn(pilot)
        columns, rows = first_size(*size, gpus)
        assert shown.main.output.size.width == columns and shown.main.output.size.height - 1 >= rows
        assert told(shown) == []
        take(shown, ENDED)  # its finding is shown, until the next run starts
        await drawn(pilot)
        take(shown, s.run(4.0, 2, 200))
        await drawn(pilot)
        assert told(shown) == []


async def test_what_no_longer_fits_is_told_once_and_not_taken_back() -> None:
    size = (120, 50)
    async with running(app(started(size, 0)), size) as (pilot, shown):
        take(shown, *(s.process(1.0, pid) for pid in range(200, 220)), s.alive(1.0, 100, *range(200, 220)))
        take(shown, events.Output(t=1.0, run=1, text="hello"))
        await drawn(pilot)
        (smaller,) = told(shown)
        assert smaller == (shown.main.output.size.width, shown.main.output.size.height - 1)
        take(shown, events.Terminal(t=1.1, columns=smaller[0], rows=smaller[1]), s.alive(2.0, 100))
        await drawn(pilot)
        assert shown.main.output.size.height - 1 > smaller[1] and told(shown) == [smaller]


async def test_who_arranges_the_screen_anew_gives_the_script_all_the_room_there_is() -> None:
    size = (120, 36)
    async with running(app(started(size, 1) + readings(1)), size) as (pilot, shown):
        await pilot.resize_terminal(120, 50)
        await drawn(pilot)
        assert told(shown)[-1] == (shown.main.output.size.width, shown.main.output.size.height - 1)
        await press(pilot, "P")  # hides the allocators beside it
        assert told(shown)[-1] == (120, shown.main.output.size.height - 1)
        await pilot.resize_terminal(100, 40)
        await drawn(pilot)
        assert told(shown)[-1] == (shown.main.output.size.width, shown.main.output.size.height - 1)
