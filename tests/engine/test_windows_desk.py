"""Windows of allocations are read, published and deleted. Unreadable ones are reported, and cost little.

For findings, windows are opened even if no screen is connected.
"""

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests import streams as s
from tests import windows as w
from tests.engine.window_files import told
from tests.engine.windows_read import Unpacked, a_window
from tests.findings.situations import begin, effective, reading
from tests.patience import PATIENCE_S
from tfmemtop.engine.sources import windows
from tfmemtop.engine.sources.window_file import file_name
from tfmemtop.engine.sources.windows import FindingWindows, WindowReader
from tfmemtop.engine.stream import Stream
from tfmemtop.events import (
    Closed,
    Damage,
    Event,
    Holders,
    HookEnd,
    HookEnding,
    Notice,
    NoticeKind,
    Opened,
    Trace,
    Window,
    Windowless,
)


class Desk:
    """A folder with windows, and the events that are published of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[Event] = []
        self.sent: list[tuple[int, dict[str, Any]]] = []
        self.stream = Stream()
        self.notices: list[Notice] = []
        self.arrived = asyncio.Event()
        self.stream.listen(self.events.append)
        self.stream.listen(lambda _: self.arrived.set())
        self.windows = WindowReader(self.stream, self.send, folder)
        self.windows.begin()

    def send(self, pid: int, command: dict[str, Any]) -> bool:
        """Store a command instead of sending it to a hook."""
        self.sent.append((pid, command))
        return True

    def put(self, data: bytes, number: int = 1, **changes: Any) -> Window:
        """Write a window's file, and announce it as its hook would."""
        window = told(data, number, **changes)
        (self.folder / file_name(window.pid, window.window)).write_bytes(data)
        self.windows.take(window)
        return window

    def told(self) -> list[Holders | Trace]:
        """Return the events published since the last call."""
        self.windows.drain()
        self.notices += (event for event in self.events if isinstance(event, Notice))
        found = [event for event in self.events if isinstance(event, Holders | Trace)]
        self.events.clear()
        return found

    def files(self) -> list[str]:
        """Return the names of the files in the folder."""
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.windows.close()


async def test_a_window_is_published_in_time_and_its_file_deleted(desk: Desk) -> None:
    desk.put(a_window())
    await asyncio.wait_for(desk.arrived.wait(), PATIENCE_S)
    (event,) = desk.told()
    assert isinstance(event, Holders) and not event.is_missing and event.t > 0
    assert Unpacked(event).total(event.peak_at) == event.peak
    assert desk.files() == []


async def test_lines_of_the_largest_operations_are_asked_for_once(desk: Desk) -> None:
    desk.put(a_window(500))
    (event,) = desk.told()
    assert isinstance(event, Holders)
    found = Unpacked(event)
    sizes: dict[str, int] = {}
    for span in found.alive(event.peak_at):
        if name := found.name(span):
            sizes[name] = sizes.get(name, 0) + found.holding(span).size
    ((pid, command),) = desk.sent
    assert pid == 7 and command["do"] == "lines" and len(command["operations"]) == 64
    assert min(sizes[name] for name in command["operations"]) >= sorted(sizes.values())[-64]
    desk.put(a_window(500), 2)
    desk.told()
    asked = [name for _, command in desk.sent for name in command["operations"]]
    assert len(desk.sent) == 2 and len(asked) == len(set(asked)) and set(asked) <= sizes.keys()


async def test_a_process_that_ends_within_a_window_tells_what_is_there(desk: Desk) -> None:
    data = a_window()
    desk.put(data + bytes(100), last=False, closed=None, bytes=len(data), opened=Opened.START)
    assert desk.told() == []
    desk.stream.publish(HookEnd(t=0.0, pid=7, reason=HookEnding.LOST))
    holders, trace = desk.told()
    assert isinstance(holders, Holders) and (holders.closed, holders.is_missing) == (Closed.EXIT, False)
    assert isinstance(trace, Trace) and not trace.whole and trace.last
    (desk.folder / "7.9.window").write_bytes(b"left behind")
    (desk.folder / "8.1.window").write_bytes(b"another's")
    desk.stream.publish(HookEnd(t=0.0, pid=7, reason=HookEnding.LOST))
    desk.told()
    assert desk.files() == ["8.1.window"]


async def test_what_cannot_be_read_is_told_as_missing(desk: Desk) -> None:
    desk.put(b"nonsense" * 20, pools=["GPU:0", "GPU:1"])
    desk.put(a_window(), 2, pools=[])
    desk.windows.take(told(b"", 3, bytes=5000))
    desk.windows.take(told(b"", 4, windowless=Windowless.PROFILER))
    events = desk.told()
    assert [(event.device, event.window) for event in events if isinstance(event, Holders) and event.is_missing] == [
        ("GPU:0", 4),
        ("GPU:0", 1),
        ("GPU:1", 1),
        ("GPU:0", 3),
    ]
    assert desk.files() == [] and [notice.kind for notice in desk.notices] == [NoticeKind.NO_WINDOW]
    assert [event.damage for event in events if isinstance(event, Holders)][1:] == [
        Damage.OTHER_FORM,
        Damage.OTHER_FORM,
        Damage.SYSTEM,
    ]


async def test_an_error_of_ours_is_told_and_the_next_window_is_read(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(windows, "events_of", None)
        desk.put(a_window())
        (event,) = desk.told()
        assert isinstance(event, Holders) and event.damage is Damage.UNFORESEEN and "TypeError" in event.detail
    desk.put(a_window(), 2)
    (event,) = desk.told()
    assert isinstance(event, Holders) and not event.is_missing and desk.files() == []


@pytest.mark.long
async def test_windows_leave_nothing_in_the_memory(desk: Desk) -> None:
    data = [a_window(100, seed) for seed in range(3)]
    held = []
    tracemalloc.start()
    try:
        for number in range(60):
            desk.put(data[number % 3], number)
            desk.told()
            desk.sent.clear()
            if number % 20 == 19:
                gc.collect()
                held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[2] < held[1] + 50_000


async def test_a_leak_has_a_window_opened_though_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "LOOK_S", 0.01)
    stream, sent = Stream(), asyncio.Queue[tuple[int, dict[str, Any]]]()

    following = FindingWindows(stream, lambda pid, command: sent.put_nowait((pid, command)))
    following.begin()
    rise = [reading(5.0 + i, s.GIB + i * s.MIB, pool=2 * s.GIB) for i in range(240)]
    try:
        for event in [*begin(), effective(True), w.census(t=4.0), *rise]:
            stream.publish(event)
        assert await asyncio.wait_for(sent.get(), PATIENCE_S) == (100, {"do": "holders", "finding": True})
        assert sent.empty()
    finally:
        following.close()
