"""What a window of allocations tells adds up to the byte, whatever is missing from it."""

import asyncio
import gc
import random
import time
import tracemalloc
from collections.abc import AsyncIterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import streams
from tests.engine.window_files import ZERO_NS, Allocator, Chunk, told, training_step
from tests.patience import PATIENCE_S
from tfmemtop.engine.sources import windows
from tfmemtop.engine.sources.window_events import Known, events_of
from tfmemtop.engine.sources.window_file import file_name, read_window
from tfmemtop.engine.sources.windows import Windows
from tfmemtop.engine.stream.recorder import Recorder
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Allocator as Reading
from tfmemtop.events import (
    Closed,
    Event,
    Holders,
    Holding,
    HookEnd,
    HookError,
    Opened,
    Trace,
    Window,
    decode_event,
    encode,
)
from tfmemtop.events.courses import (
    Allocated,
    Freed,
    Span,
    numbers,
    unpack_holdings,
    unpack_names,
    unpack_spans,
    unpack_trace,
)
from tfmemtop.recording import Writer, read
from tfmemtop.recording import writer as writing
from tfmemtop.recording.chunks import chunks


class Unpacked:
    """What a reader finds in an event."""

    def __init__(self, event: Holders) -> None:
        self.event = event
        self.names = unpack_names(event.names)
        self.holdings = unpack_holdings(event.holdings)
        self.spans = unpack_spans(event.spans, self.holdings)
        self.times = list(numbers(event.times))

    def alive(self, at: int) -> list[Span]:
        """What is alive after an event."""
        return [span for span in self.spans if span.begin <= at and (span.end < 0 or span.end > at)]

    def total(self, at: int) -> int:
        """Bytes that are alive after an event."""
        return sum(self.holdings[span.holding].size for span in self.alive(at))

    def course(self) -> list[int]:
        """Bytes that are alive before the first event and after each."""
        changes = [0] * (len(self.times) + 1)
        for span in self.spans:
            changes[span.begin + 1] += self.holdings[span.holding].size
            if span.end >= 0:
                changes[span.end + 1] -= self.holdings[span.holding].size
        return list(accumulate(changes))

    def name(self, span: Span) -> str | None:
        """The operation of an allocation."""
        operation = self.holdings[span.holding].operation
        return None if operation is None else self.names[operation]

    def holding(self, span: Span) -> Holding:
        return self.holdings[span.holding]


def made(folder: Path, data: bytes, known: Known | None = None, window: Window | None = None) -> list[Holders | Trace]:
    """The events of a file."""
    window = window or told(data)
    (folder / file_name(window.pid, window.window)).write_bytes(data)
    file = read_window(folder, file_name(window.pid, window.window), window.bytes)
    return [*events_of(window, file, known or Known(), lambda monotonic: monotonic - 5.0, lambda: None)]


def holders(folder: Path, data: bytes, known: Known | None = None, window: Window | None = None) -> Unpacked:
    """What the only :class:`Holders` event of a file tells."""
    (event,) = (event for event in made(folder, data, known, window) if isinstance(event, Holders))
    return Unpacked(event)


def test_a_step_is_told_to_the_byte(tmp_path: Path) -> None:
    allocator = Allocator()
    weights = [allocator.allocate(1000 * number) for number in range(1, 6)]
    window = allocator.window().step()
    training_step(allocator, 300)
    window.end_step()
    found = holders(tmp_path, window.file(pieces=3))
    event = found.event
    assert found.course() == [window.before, *allocator.figures]
    assert event.peak == max(allocator.figures) == found.total(event.peak_at) and event.unknown == event.lost == 0
    assert (event.before, event.steps, event.function) == (sum(weight.size for weight in weights), 1.0, "train_step")
    times = [row[0] for row in allocator.records]
    assert sum(found.times) == pytest.approx((times[-1] - ZERO_NS) / 1000, abs=10)
    assert found.times[1:] == pytest.approx([(now - before) / 1000 for before, now in pairwise(times)], abs=1.001)
    assert event.began == pytest.approx(0.0, abs=0.001)
    assert event.ended - event.began == pytest.approx((times[-1] - ZERO_NS) / 1e9, abs=1e-4)
    assert {(found.name(span), span.address, span.begin, span.end) for span in found.spans if span.begin >= 0} == {
        (chunk.operation, chunk.address, chunk.began, -1 if chunk.ended is None else chunk.ended)
        for chunk in allocator.made
    }
    first = next(span for span in found.spans if span.begin >= 0)
    holding = found.holding(first)
    assert (holding.dtype, holding.region, holding.window) == ("float32", "output", 1)
    assert holding.shape == [8, 112, 112, 64]


def test_where_nothing_rises_the_peak_is_the_beginning(tmp_path: Path) -> None:
    allocator = Allocator()
    weight = allocator.allocate(5000, "w")
    window = allocator.window()
    allocator.free(weight)
    found = holders(tmp_path, window.file())
    assert (found.event.peak, found.event.peak_at, found.event.before, found.total(-1)) == (5120, -1, 5120, 5120)


def test_records_that_the_chunks_have_already_do_not_count_twice(tmp_path: Path) -> None:
    allocator = Allocator()
    window = allocator.window()
    early = [allocator.allocate(4096, f"early{number}") for number in range(8)]
    allocator.free(early[3])
    window.before, window.at_ns = allocator.in_use, allocator.now_ns - 25_000  # the clock was read a little before
    window.chunks = [(chunk.address, chunk.size, chunk.requested) for chunk in allocator.alive.values()]
    so_far = len(allocator.figures)
    training_step(allocator, 60)
    found = holders(tmp_path, window.file())
    assert found.course() == [window.before, *allocator.figures[so_far:]] and found.event.lost == 0


@pytest.mark.parametrize("seed", range(6))
def test_records_in_a_wrong_order_are_put_right(tmp_path: Path, seed: int) -> None:
    allocator = Allocator()
    window = allocator.window()
    training_step(allocator, 60, seed)
    rows = list(allocator.records)
    for at in range(seed % 3, len(rows) - 2, 3):
        one, other = rows[at : at + 2]
        rows[at : at + 2] = [(one[0], *other[1:]), (one[0] + seed % 2, *one[1:])]
    found = holders(tmp_path, window.file(rows))
    assert found.course() == [0, *allocator.figures] and found.event.lost == 0


@pytest.mark.parametrize("seed", range(25))
def test_lost_records_leave_an_unknown_rest_and_the_sum_stays_right(tmp_path: Path, seed: int) -> None:
    allocator, chance = Allocator(), random.Random(seed)
    for number in range(20):
        allocator.allocate(chance.randrange(1, 100_000), f"w{number}")
    window = allocator.window()
    training_step(allocator, 200, seed)
    rows = [row for row in allocator.records if chance.random() > 0.02 * (seed % 5 + 1)]
    found = holders(tmp_path, window.file(rows, lost=3))
    event = found.event
    assert event.peak == max(row[4] for row in rows)
    assert found.total(event.peak_at) + event.unknown == event.peak
    assert event.lost >= 3
    right = {(chunk.operation, chunk.address, chunk.size) for chunk in allocator.made}
    told_of = {(found.name(span), span.address, found.holding(span).size) for span in found.spans if span.begin >= 0}
    assert told_of <= right


def test_what_was_freed_unseen_does_not_live_on_where_others_lie(tmp_path: Path) -> None:
    allocator = Allocator()
    window = allocator.window()
    one, other = allocator.allocate(1000, "one"), allocator.allocate(512, "other")
    allocator.free(one)
    allocator.allocate(1000, "third")
    rows = [row for row in allocator.records if row[3] != -1024]
    found = holders(tmp_path, window.file(rows))
    assert [(found.name(span), span.begin, span.end) for span in found.spans] == [
        ("one", 0, 2),
        ("other", 1, -1),
        ("third", 2, -1),
    ]
    assert other.address and found.event.lost == 1 and found.event.unknown == 0


def test_names_are_kept_from_one_window_to_the_next(tmp_path: Path) -> None:
    allocator, known = Allocator(), Known()
    start = allocator.window()
    weights = [allocator.allocate(3000 * number, f"weight{number}") for number in range(1, 9)]
    holders(tmp_path, start.file(), known)
    allocator.free(weights[2])
    allocator.allocate(8999, "other")  # in its place, and not as large
    allocator.free(weights[5])
    second = allocator.window()
    step = allocator.allocate(100, "step")
    found = holders(tmp_path, second.file(), known, told(second.file(), 2))
    windows: dict[str | None, int] = {f"weight{number}": 1 for number in (1, 2, 4, 5, 7, 8)}
    windows |= {None: 0, "step": 2}
    assert {found.name(span): found.holding(span).window for span in found.spans} == windows
    allocator.free(weights[0])
    third = allocator.window()
    found = holders(tmp_path, third.file(), known, told(third.file(), 3))
    assert {found.holding(span).window for span in found.spans if found.name(span) == "step"} == {2}
    assert step.address in {span.address for span in found.spans}


def test_of_the_start_window_holders_tell_the_last_whole_step(tmp_path: Path) -> None:
    allocator = Allocator()
    window = allocator.window()
    weights = [allocator.allocate(1000 * number, f"weight{number}") for number in range(1, 6)]
    marks, begin = [], 0
    for _ in range(3):
        window.step()
        begin = allocator.now_ns
        marks.append(len(allocator.figures))
        training_step(allocator, 30)
        window.end_step()
    end = len(allocator.figures)
    allocator.free(allocator.allocate(1 << 30, "later"))
    data = window.file()
    events = made(tmp_path, data, window=told(data, opened=Opened.START))
    found = Unpacked(next(event for event in events if isinstance(event, Holders)))
    assert found.course() == [allocator.figures[marks[2] - 1], *allocator.figures[marks[2] : end]]
    assert {(found.name(span), found.holding(span).window) for span in found.spans if span.begin < 0} == {
        (weight.operation, 1) for weight in weights
    }
    assert found.event.steps == 1.0 and found.event.began == pytest.approx((begin - ZERO_NS) / 1e9, abs=1e-6)
    (trace,) = (event for event in events if isinstance(event, Trace))
    assert (trace.events, trace.steps, trace.part, trace.last, trace.whole) == (
        len(allocator.figures),
        marks,
        0,
        True,
        True,
    )
    assert replayed([trace]) == allocator.figures


def replayed(parts: list[Trace]) -> list[int]:
    """In use after each event of a trace, in chunks of 256 bytes."""
    sizes: list[int] = []
    in_use, figures = 0, []
    for part in parts:
        events = unpack_trace(part.packed, len(sizes))
        assert len(events) == part.events
        for event in events:
            if isinstance(event, Freed):
                in_use -= sizes[event.allocation]
            else:
                sizes.append(max(256, -(-event.requested // 256) * 256))
                in_use += sizes[-1]
            figures.append(in_use)
    return figures


def test_a_long_trace_comes_in_parts(tmp_path: Path) -> None:
    allocator = Allocator()
    weights = [allocator.allocate(1000 * number) for number in range(1, 6)]
    before = list(allocator.figures)
    window = allocator.window()
    marks = []
    for step in range(5):
        window.step()
        marks.append(len(weights) + len(allocator.figures))
        training_step(allocator, 2600, step)
        window.end_step()
    data = window.file(pieces=4)
    events = made(tmp_path, data, window=told(data, opened=Opened.START))
    parts = [event for event in events if isinstance(event, Trace)]
    assert [part.part for part in parts] == list(range(len(parts))) and len(parts) > 2
    assert [part.last for part in parts] == [False] * (len(parts) - 1) + [True]
    assert replayed(parts) == before + allocator.figures
    assert [step for part in parts for step in part.steps] == marks
    names = [name for part in parts for name in unpack_names(part.names)]
    assert len(names) == len(set(names)) == len({chunk.operation for chunk in allocator.made})
    asked = [
        (event.requested, None if event.operation is None else names[event.operation])
        for event in unpack_all(parts)
        if isinstance(event, Allocated)
    ]
    assert asked[len(weights) :] == [(chunk.requested, chunk.operation) for chunk in allocator.made]
    assert sum(len(encode(part)) for part in parts) < 8 * sum(part.events for part in parts)


def unpack_all(parts: list[Trace]) -> list[Allocated | Freed]:
    """All events of a trace."""
    found: list[Allocated | Freed] = []
    for part in parts:
        found += unpack_trace(part.packed, sum(isinstance(event, Allocated) for event in found))
    return found


class Desk:
    """A folder with windows, and what is published of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[Event] = []
        self.sent: list[tuple[int, dict[str, Any]]] = []
        self.stream = Stream()
        self.errors: list[HookError] = []
        self.arrived = asyncio.Event()
        self.stream.listen(self.events.append)
        self.stream.listen(lambda _: self.arrived.set())
        self.windows = Windows(self.stream, self, folder)
        self.windows.begin()

    def send(self, pid: int, command: dict[str, Any]) -> bool:
        """What would be sent to a hook."""
        self.sent.append((pid, command))
        return True

    def put(self, data: bytes, number: int = 1, **changes: Any) -> Window:
        """Put a file down and tell of it."""
        window = told(data, number, **changes)
        (self.folder / file_name(window.pid, window.window)).write_bytes(data)
        self.windows.take(window)
        return window

    def told(self) -> list[Holders | Trace]:
        """What has been published since the last time."""
        self.windows.drain()
        self.errors += (event for event in self.events if isinstance(event, HookError))
        found = [event for event in self.events if isinstance(event, Holders | Trace)]
        self.events.clear()
        return found

    def files(self) -> list[str]:
        """What lies in the folder."""
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.windows.close()


def a_window(allocations: int = 60, seed: int = 0) -> bytes:
    """The file of a window with a step."""
    allocator = Allocator()
    allocator.allocate(5000, "weight")
    window = allocator.window().step()
    training_step(allocator, allocations, seed)
    window.end_step()
    return window.file()


async def test_a_window_is_published_in_time_and_its_file_deleted(desk: Desk) -> None:
    desk.put(a_window())
    await asyncio.wait_for(desk.arrived.wait(), PATIENCE_S)
    (event,) = desk.told()
    assert isinstance(event, Holders) and event.missing is None and event.t > 0
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
    desk.stream.publish(HookEnd(t=0.0, pid=7, reason="lost"))
    holders, trace = desk.told()
    assert isinstance(holders, Holders) and (holders.closed, holders.missing) == (Closed.EXIT, None)
    assert isinstance(trace, Trace) and not trace.whole and trace.last
    (desk.folder / "7.9.window").write_bytes(b"left behind")
    (desk.folder / "8.1.window").write_bytes(b"another's")
    desk.stream.publish(HookEnd(t=0.0, pid=7, reason="lost"))
    desk.told()
    assert desk.files() == ["8.1.window"]


async def test_what_cannot_be_read_is_told_as_missing(desk: Desk) -> None:
    desk.put(b"nonsense" * 20, pools=["GPU:0", "GPU:1"])
    desk.put(a_window(), 2, pools=[])
    desk.windows.take(told(b"", 3, bytes=5000))
    desk.windows.take(told(b"", 4, missing="a reason"))
    events = desk.told()
    assert [(event.device, event.window) for event in events if isinstance(event, Holders) and event.missing] == [
        ("GPU:0", 4),
        ("GPU:0", 1),
        ("GPU:1", 1),
        ("GPU:0", 3),
    ]
    assert desk.files() == [] and [error.text for error in desk.errors] == ["window 2: a pool has no name"]


async def test_an_error_of_ours_is_told_and_the_next_window_is_read(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(windows, "events_of", None)
        desk.put(a_window())
        (event,) = desk.told()
        assert isinstance(event, Holders) and event.missing and "TypeError" in event.missing
    desk.put(a_window(), 2)
    (event,) = desk.told()
    assert isinstance(event, Holders) and event.missing is None and desk.files() == []


async def test_too_many_windows_at_once_are_not_read(desk: Desk) -> None:
    data = a_window()
    for number in range(40):
        desk.put(data, number)
    events = [event for event in desk.told() if isinstance(event, Holders)]
    assert 0 < sum(event.missing is None for event in events) <= 17 and len(events) == 40
    assert desk.files() == []


def large(allocations: int, names: int = 10**9) -> bytes:
    """A window with so many allocations, all unlike each other, of which many live at once."""
    allocator = Allocator()
    window = allocator.window()
    chance = random.Random(1)
    alive: list[Chunk] = []
    ids = {number: number + 1 for number in range(min(names, allocations))}
    allocator.strings += [f"operation {number:06} {chance.random()}" for number in ids]
    for number in range(allocations):
        alive.append(allocator.allocate(chance.randrange(1, 1 << 24)))
        row = list(allocator.records[-1])
        row[6] = ids[number % len(ids)]
        allocator.records[-1] = tuple(row)
        allocator.now_ns += chance.randrange(10**6)
        while chance.random() < 0.49 + 0.02 * (number > allocations / 2) and alive:
            allocator.free(alive.pop(chance.randrange(len(alive))))
    return window.file()


@pytest.mark.parametrize(("allocations", "names"), [(6000, 10**9), (30_000, 100)])
def test_what_is_too_large_for_an_event_is_told_as_a_sum(tmp_path: Path, allocations: int, names: int) -> None:
    found = holders(tmp_path, large(allocations, names))
    event = found.event
    assert max(len(field) for field in (event.names, event.holdings, event.spans, event.times)) <= 2**17
    assert len(found.holdings) <= 4096
    assert found.total(event.peak_at) == event.peak and event.unknown == 0
    named = sum(found.holding(span).size for span in found.alive(event.peak_at) if found.name(span))
    assert named > 0.75 * event.peak
    sums = [span for span in found.spans if not found.name(span)]
    assert sums and all(span.address == 0 for span in sums)
    assert all(total <= event.peak for total in found.course())
    assert decode_event(encode(event)) == event


def test_a_step_of_two_thousand_allocations_is_small(tmp_path: Path) -> None:
    found = holders(tmp_path, a_window(2000))
    assert len(found.holdings) > 1500 and len(encode(found.event)) <= 60_000


REAL = Path(__file__).parents[1] / "probe" / "windows"


@pytest.mark.parametrize("loop", ["eager", "jit", "keras_fit"])
def test_windows_of_real_scripts_add_up(loop: str) -> None:
    known = Known()
    for opened in ("start", "asked"):
        window = msgspec.json.decode((REAL / f"{loop}.{opened}.json").read_bytes(), type=Window)
        file = read_window(REAL, f"{loop}.{opened}.window", window.bytes)
        events = [*events_of(window, file, known, lambda monotonic: monotonic, lambda: None)]
        (event,) = (event for event in events if isinstance(event, Holders))
        found = Unpacked(event)
        assert event.unknown == event.lost == file.lost == 0
        assert max(found.course()) == found.total(event.peak_at) == event.peak and found.course()[0] == event.before
        assert event.steps is not None and event.steps >= 1 and event.ended > event.began
        older = [span for span in found.alive(event.peak_at) if not found.holding(span).window]
        assert sum(found.holding(span).size for span in older) < (0.15 if opened == "start" else 0.4) * event.peak
        parts = [event for event in events if isinstance(event, Trace)]
        assert bool(parts) == (opened == "start")
        if parts:
            assert parts[-1].last and parts[-1].whole and len(parts[-1].steps) >= 3
            assert sum(part.events for part in parts) == len(file.records)
            assert sum(len(encode(part)) for part in parts) < 8 * len(file.records)


def test_the_recording_of_a_real_script_tells_who_held_each_peak() -> None:
    events = [*read(REAL.parents[1] / "recordings" / "cpu-holders.jsonl").events()]
    start, peak = (event for event in events if isinstance(event, Holders))
    assert (start.opened, peak.opened) == (Opened.START, Opened.PEAK) and peak.peak > 1.1 * start.peak
    for event in (start, peak):
        found = Unpacked(event)
        assert found.total(event.peak_at) == event.peak and event.unknown == event.lost == 0
        named = sum(found.holding(span).size for span in found.alive(event.peak_at) if found.name(span))
        assert named > 0.7 * event.peak
        (conv,) = {
            tuple(found.holding(span).shape or ())
            for span in found.alive(event.peak_at)
            if (found.name(span) or "").endswith("conv2_1/Relu")
        }
        assert conv == ((32 if event is start else 64), 28, 28, 32)
    highest = max(event.peak or 0 for event in events if isinstance(event, Reading))
    assert 0.9 * highest < peak.peak <= highest
    (trace,) = (event for event in events if isinstance(event, Trace))
    assert trace.whole and trace.last and len(trace.steps) >= 3


MINUTES = 30
CHUNKS = 6
"""Of a compressed recording in an hour of one script on one GPU: each repeats what a reader needs who begins there."""


def a_reading(in_use: int) -> Reading:
    """A reading of an allocator."""
    return Reading(t=0.0, pid=7, device="GPU:0", allocator="bfc", in_use=in_use, peak=in_use, pool=1 << 30, limit=None)


async def test_a_window_a_minute_adds_little_to_a_recording(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    hourly = [a_window(2000, seed) for seed in range(5)]
    chance = random.Random(1)
    monkeypatch.setattr(writing, "CHUNK", 60 * 600 * len(encode(a_reading(1 << 30))) // CHUNKS)
    desk.stream.publish(streams.session())
    sizes = []
    for with_windows in (False, True):
        path = desk.folder / f"{with_windows}.gz"
        recorder = Recorder(desk.stream, Writer(path))
        recorder.begin()
        for minute in range(MINUTES):
            for _ in range(600):
                desk.stream.publish(a_reading(chance.randrange(1 << 30)))
            if with_windows:
                desk.put(hourly[minute % len(hourly)], minute)
                desk.told()
        recorder.close()
        assert recorder.trouble is None
        sizes.append(path.stat().st_size)
    found = [event for event in read(path).events() if isinstance(event, Holders)]
    assert len(found) == MINUTES and all(event.missing is None for event in found)
    with path.open("rb") as file:
        assert len([*chunks(file)]) >= MINUTES * CHUNKS // 60
    assert (sizes[1] - sizes[0]) * 24 * 60 / MINUTES <= 60e6


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


async def test_the_readings_go_on_while_a_large_window_is_read(desk: Desk) -> None:
    desk.put(large(25_000, 2000))
    latest: list[float] = []
    began = time.thread_time()
    while not desk.arrived.is_set():
        before = time.monotonic()
        await asyncio.sleep(0.001)  # as a reading would come
        latest.append(time.monotonic() - before)
    assert len(latest) > 20 and sorted(latest)[len(latest) * 3 // 4] < 0.25
    assert time.thread_time() - began < 1.0, "the work is not in this thread"
