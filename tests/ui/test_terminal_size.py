"""The size of the script's terminal: its panel's size from the start.

The user can change it. Readings change it only once the size no longer fits.
"""

import pytest

from tests import streams as s
from tests.ui.recorded import source_of
from tests.ui.shown import ENDED, GIB, app, drawn, press
from tfmemtop import events
from tfmemtop.state import apply
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.draw.layout import first_size

pytestmark = pytest.mark.screens


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


@pytest.mark.parametrize(("size", "gpus"), [((80, 24), 2), ((111, 37), 0), ((200, 60), 2)], ids=str)
async def test_the_first_size_lasts_while_devices_processes_and_a_finding_come(
    size: tuple[int, int], gpus: int
) -> None:
    async with app(started(size, gpus)).run_test(size=size) as pilot:
        shown = await drawn(pilot)
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
    async with app(started(size, 0)).run_test(size=size) as pilot:
        shown = await drawn(pilot)
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
    async with app(started(size, 1) + readings(1)).run_test(size=size) as pilot:
        shown = await drawn(pilot)
        await pilot.resize_terminal(120, 50)
        await drawn(pilot)
        assert told(shown)[-1] == (shown.main.output.size.width, shown.main.output.size.height - 1)
        await press(pilot, "P")  # hides the allocators beside it
        assert told(shown)[-1] == (120, shown.main.output.size.height - 1)
        await pilot.resize_terminal(100, 40)
        await drawn(pilot)
        assert told(shown)[-1] == (shown.main.output.size.width, shown.main.output.size.height - 1)
