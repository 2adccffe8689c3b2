"""The keys that sum the processes by user, and those that sort them by a column's letter."""

from collections.abc import AsyncIterator

import pytest
from textual.pilot import Pilot

from tests import streams as s
from tests.ui.recorded import Recorded
from tests.ui.test_app import GIB, drawn, press, text_of
from tfmemtop import events
from tfmemtop.options import ScreenOutcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp

pytestmark = pytest.mark.screens


def owned(pid: int, user: str, command: str) -> events.Process:
    return events.Process(t=1.0, pid=pid, ppid=1, user=user, command=command.split(), started=1.7e9, run=None)


def shared() -> list[events.Event]:
    held = {101: 8 * GIB, 102: 2 * GIB, 201: 30 * GIB, 301: None}
    return [
        s.session(),
        *(s.device(index) for index in range(2)),
        *(owned(pid, "ada", f"python a{pid}.py") for pid in (101, 102)),
        owned(201, "grace", "python big.py"),
        owned(301, "alan", "python hidden.py"),
        s.alive(1.0, 101, 102, 201, 301),
        s.device_reading(2.0, held),
        s.device_reading(2.0, {101: 4 * GIB}, index=1),
    ]


@pytest.fixture
async def pilot() -> AsyncIterator[Pilot[ScreenOutcome]]:
    async with TfmemtopApp(Recorded(shared()), UiOptions()).run_test(size=(120, 36)) as pilot:
        await drawn(pilot)
        yield pilot


def rows(shown: str, *names: str) -> list[list[str]]:
    return [line.split() for line in shown.splitlines() if line.split()[:1] and line.split()[0] in names]


async def test_memory_is_summed_by_user_who_holds_most_first(pilot: Pilot[ScreenOutcome]) -> None:
    shown = await press(pilot, "u")
    found = rows(shown, "ada", "grace", "alan")
    assert [row[:4] for row in found] == [
        ["grace", "1", "0", "30.0G"],
        ["ada", "2", "0,1", "14.0G"],  # a process on two GPUs is one process
        ["alan", "1", "0", "—"],
    ]
    assert "Users 3" in shown
    back = await press(pilot, "u")
    assert "Processes 5" in back


async def test_a_user_whose_processes_have_ended_stays() -> None:
    gone = [*shared(), s.alive(3.0, 101, 201, 301)]
    alone = [s.session(), s.run(), s.process(0.6, 100), s.alive(1.0, 100), s.alive(3.0)]
    alone.append(events.RunEnd(t=3.0, run=1, exit_code=0, signal=None))
    async with TfmemtopApp(Recorded(gone), UiOptions()).run_test(size=(120, 36)) as pilot:
        await drawn(pilot)
        assert rows(await press(pilot, "u"), "ada")[0][1] == "1"
    app = TfmemtopApp(Recorded(alone), UiOptions())
    async with app.run_test(size=(120, 36)) as pilot:
        await drawn(pilot)
        assert "Processes 1" in text_of(app)
        shown = await press(pilot, "u")
        assert "Users 1" in shown and rows(shown, "ada")[0][1:3] == ["1", "ended"]


async def test_enter_on_a_user_shows_that_users_processes(pilot: Pilot[ScreenOutcome]) -> None:
    shown = await press(pilot, "u", "down", "enter")
    assert "Processes 3 of 5" in shown and "filter: ada" in shown and "big.py" not in shown
    assert "Processes 5" in await press(pilot, "escape")


async def test_a_letter_after_o_chooses_the_column_as_in_nvitop(pilot: Pilot[ScreenOutcome]) -> None:
    assert "n GPU" in (await press(pilot, "o")).splitlines()[-1]
    shown = await press(pilot, "g")
    assert "sort GPU-MEM ▼" in shown
    order = [line.split()[1] for line in shown.splitlines() if ".py" in line]
    assert order == ["201", "101", "101", "102", "301"]
    assert "sort GPU-MEM ▲" in await press(pilot, "o", "G")
    assert "sort USER ▲" in await press(pilot, "o", "u")
    assert "sort USER ▲" in await press(pilot, "o", "escape")
    assert "Users" not in await press(pilot, "o", "x")
