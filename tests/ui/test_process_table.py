"""The process table, used with keys and mouse, on Textual's own screen."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.events import MouseScrollDown
from textual.pilot import Pilot

from tests.streams import GIB, device, device_reading, fold, session
from tests.ui.process_data import crowd, seen, small
from tfmemtop import events
from tfmemtop.events.machine import Workload
from tfmemtop.state import State, apply
from tfmemtop.ui.panels.process_table import ProcessTable


class Screen(App[None]):
    """An app with the table alone, which stores the table's messages in ``asked``."""

    def __init__(self, state: State) -> None:
        super().__init__(ansi_color=True)
        self.table = ProcessTable()
        self.state = state
        self.asked: list[object] = []

    def compose(self) -> ComposeResult:
        yield self.table

    def on_mount(self) -> None:
        self.table.focus()
        self.table.show(self.state)

    def on_process_table_details(self, message: ProcessTable.Details) -> None:
        self.asked.append(("details", message.pid))

    def on_process_table_signal(self, message: ProcessTable.Signal) -> None:
        self.asked.append(("signal", message.pids))

    def lines(self) -> list[str]:
        return [self.table.render_line(y).text for y in range(self.table.size.height)]

    def pids(self) -> list[int]:
        return [int(line[3:].split()[1]) for line in self.lines()[2:] if line.strip()]

    def chosen(self) -> int:
        row = self.table.selected
        assert row is not None
        return row.pid


@pytest.fixture
async def pilot() -> AsyncIterator[Pilot[None]]:
    async with Screen(small()).run_test(size=(120, 12)) as pilot:
        await pilot.pause()
        yield pilot


def app_of(pilot: Pilot[None]) -> Screen:
    assert isinstance(pilot.app, Screen)
    return pilot.app


async def test_the_selection_follows_its_process_when_rows_reorder(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    await pilot.press("down")
    assert app.chosen() == 100
    apply(app.state, device_reading(2.0, index=0, held={100: 9 * GIB, 200: 5 * GIB}))
    app.table.show(app.state)
    assert app.pids()[:2] == [100, 200]
    assert app.chosen() == 100
    await pilot.press("end")
    assert app.chosen() == 300
    await pilot.press("up", "home")
    assert app.chosen() == 100


async def test_a_selected_process_that_vanishes_leaves_its_place_to_the_next(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    await pilot.press("down", "down", "down")
    assert app.chosen() == 250
    apply(app.state, device_reading(2.0, index=1, held={100: GIB}))
    apply(
        app.state,
        events.ProcessReadings(t=9.0, processes=[events.ProcessReading(pid, 1.0, GIB) for pid in (100, 200, 300)]),
    )
    app.table.show(app.state)
    assert app.chosen() == 300


async def test_sorting_by_keys(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    await pilot.press("f6")
    assert "sort PID ▲" in app.lines()[0]
    assert app.pids() == [100, 100, 200, 250, 300]
    await pilot.press("I")
    assert "sort PID ▼" in app.lines()[0]
    assert app.pids() == [300, 250, 200, 100, 100]
    await pilot.press("full_stop", "full_stop")
    assert "sort GPU-MEM ▼" in app.lines()[0]
    assert app.pids() == [200, 100, 100, 250, 300]
    await pilot.press("comma")
    assert "sort USER ▲" in app.lines()[0]


async def test_a_letter_after_o_chooses_the_column_as_in_nvitop(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    await pilot.press("o", "g")
    assert "sort GPU-MEM ▼" in app.lines()[0]
    await pilot.press("o", "G")
    assert "sort GPU-MEM ▲" in app.lines()[0]
    await pilot.press("o", "escape")
    assert "sort GPU-MEM ▲" in app.lines()[0]


async def test_a_filter_is_typed_kept_and_cleared(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    await pilot.press("slash", *"kJ")
    assert "filter: kJ▏" in app.lines()[0]
    assert app.asked == []  # here k is text, and sends no signal
    assert "no process matches 'kJ'" in app.lines()[2]
    await pilot.press("backspace", "backspace", *"GRACE", "enter")
    assert " 1 of 5 " in app.lines()[0] and "filter: GRACE " in app.lines()[0]
    assert app.pids() == [200]
    await pilot.press("f4", "escape")
    assert "filter" not in app.lines()[0]
    assert len(app.pids()) == 5


async def test_what_a_process_belongs_to_has_a_column_once_it_is_known_and_is_found_by_the_filter(
    pilot: Pilot[None],
) -> None:
    app = app_of(pilot)
    assert "WORKLOAD" not in app.lines()[1]
    uid = "019c1fe8-0d92-4aa0-b61c-4df58bdde71c"
    workload = Workload(engine="containerd", container="9e073649debe" + 52 * "0", pod="train-0", pod_uid=uid)
    apply(app.state, replace(seen(200), workload=workload, inner_pids=(7,)))
    app.table.show(app.state)
    place = app.lines()[1].index("WORKLOAD")
    assert {line[place:].split()[0] for line in app.lines()[2:] if line.strip()} == {"train-0", "—"}
    for word in ("TRAIN-0", "9e073649", "019c1fe8"):
        await pilot.press("slash", *word, "enter")
        assert app.pids() == [200]
        await pilot.press("escape")


async def test_of_a_filter_longer_than_its_room_the_end_is_seen(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    await pilot.press("slash", *"漢字" * 60, "z")
    assert "字z▏" in app.lines()[0] and cell_len(app.lines()[0]) == 120


async def test_signals_go_to_the_tagged_or_to_the_selected(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    await pilot.press("k")
    await pilot.press("space", "end", "space")
    assert "2 tagged" in app.lines()[0]
    assert app.lines()[2].startswith("+") and app.lines()[6].startswith("+")
    await pilot.press("home", "f9", "U", "down", "k")
    assert app.asked == [("signal", [200]), ("signal", [200, 300]), ("signal", [100])]
    assert "tagged" not in app.lines()[0]


async def test_a_process_that_ended_gets_no_signal(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    apply(app.state, events.ProcessReadings(t=9.0, processes=[]))
    app.table.show(app.state)
    assert app.chosen() == 100 and "■" in app.lines()[2] and "ended train.py" in app.lines()[2]
    await pilot.press("k")
    assert app.asked == []


async def test_the_mouse_selects_sorts_scrolls_and_opens(pilot: Pilot[None]) -> None:
    app = app_of(pilot)
    await pilot.click(ProcessTable, offset=(30, 4))
    assert app.chosen() == 100 and app.table.selected is not None and app.table.selected.gpu == 1
    head = app.lines()[1]
    await pilot.click(ProcessTable, offset=(head.index("%CPU"), 1))
    assert "sort %CPU ▼" in app.lines()[0] and app.pids()[0] == 300
    await pilot.click(ProcessTable, offset=(head.index("%CPU"), 1))
    assert "sort %CPU ▲" in app.lines()[0]
    await pilot.click(ProcessTable, offset=(30, 2), times=2)
    assert app.asked == [("details", 200)]


async def test_only_what_fits_is_shown_and_the_wheel_looks_further() -> None:
    app = Screen(crowd())
    async with app.run_test(size=(160, 20)) as pilot:
        await pilot.pause()
        first = app.pids()
        assert len(first) == 18
        app.table.post_message(_wheel(app.table))
        await pilot.pause()
        assert app.pids()[:15] == first[3:]
        await pilot.press("pagedown")
        assert app.chosen() == first[17]
        await pilot.press("end")
        assert app.pids()[-1] == app.chosen()
        app.table.show(fold([session()]))
        assert app.lines()[2].strip() == "no process"


async def test_one_column_is_cut_where_not_even_that_has_room() -> None:
    async with Screen(crowd()).run_test(size=(8, 6)) as pilot:
        await pilot.pause()
        assert any("…" in line for line in app_of(pilot).lines())


def _wheel(table: ProcessTable) -> MouseScrollDown:
    return MouseScrollDown(table, 5, 5, 0, 1, 0, False, False, False, 5, 5)


async def test_in_a_container_no_process_is_listed_though_others_fill_the_gpu() -> None:
    nothing = device_reading(2.0, {})
    full = msgspec.structs.replace(nothing, used=61 * GIB, outside=61 * GIB)
    for answer, told in (
        (full, "no process of this container holds GPU memory"),
        (nothing, "no process holds GPU memory"),
    ):
        app = Screen(fold([session([]), device(), answer]))
        async with app.run_test(size=(80, 6)) as pilot:
            await pilot.pause()
            assert app.lines()[2].strip() == told
