"""The events of a window of allocations add up to the byte, whatever is missing from the window."""

import random
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from tests.engine.window_files import ZERO_NS, Allocator, section, told, training_step
from tests.engine.windows_read import Unpacked, holders, large, made
from tfmemtop.engine.sources.window_events import Known
from tfmemtop.events import Holders, Opened, Trace, decode_event, encode
from tfmemtop.events.allocations import Call, TraceAllocations, unpack
from tfmemtop.events.holders import MOST_PACKED
from tfmemtop.experiments.whatif.course import course_of


def test_a_step_is_told_to_the_byte(tmp_path: Path) -> None:
    allocator = Allocator()
    weights = [allocator.allocate(1000 * number) for number in range(1, 6)]
    window = allocator.window().step()
    training_step(allocator, 300)
    window.end_step()
    found = holders(tmp_path, window.file(pieces=3))
    event = found.event
    assert found.course() == [window.before, *allocator.figures]
    assert event.peak == max(allocator.figures) == found.total(event.peak_at) and event.lost == 0
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


def test_records_that_the_chunks_have_already_do_not_count_twice(tmp_path: Path) -> None:
    allocator = Allocator()
    old = allocator.allocate(2048, "old")
    window, before = allocator.window(), allocator.in_use
    early = [allocator.allocate(4096, f"early{number}") for number in range(8)]
    allocator.free(early[3])
    allocator.free(old)
    window.before, window.at_ns = allocator.in_use, allocator.now_ns - 25_000  # the clock was read a little before
    window.chunks = [(chunk.address, chunk.size, chunk.requested) for chunk in allocator.alive.values()]
    training_step(allocator, 60)
    found = holders(tmp_path, window.file())
    assert found.course() == [before, *allocator.figures] and found.event.lost == 0


def test_records_in_a_wrong_order_are_put_right(tmp_path: Path) -> None:
    allocator = Allocator()
    window = allocator.window()
    training_step(allocator, 60)
    rows = list(allocator.records)
    for at in range(0, len(rows) - 2, 3):
        one, other = rows[at : at + 2]
        rows[at : at + 2] = [(one[0], *other[1:]), (one[0] + at % 2, *one[1:])]
    found = holders(tmp_path, window.file(rows))
    assert found.course() == [0, *allocator.figures] and found.event.lost == 0


@pytest.mark.parametrize("seed", range(3))
def test_lost_records_leave_an_unknown_rest_and_the_sum_stays_right(tmp_path: Path, seed: int) -> None:
    allocator, chance = Allocator(), random.Random(seed)
    for number in range(20):
        allocator.allocate(chance.randrange(1, 100_000), f"w{number}")
    window = allocator.window()
    training_step(allocator, 200, seed)
    rows = [row for row in allocator.records if chance.random() > 0.02 * (seed % 5 + 1)]
    found = holders(tmp_path, window.file(rows))
    event = found.event
    assert event.peak == max(row[4] for row in rows)
    assert found.total(event.peak_at) <= event.peak
    assert 0 < event.lost <= len(allocator.records) - len(rows)
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
    assert other.address and found.event.lost == 1


def test_names_are_kept_from_one_window_to_the_next(tmp_path: Path) -> None:
    allocator, known = Allocator(), Known()
    start = allocator.window()
    weights = [allocator.allocate(3000 * number, f"weight{number}") for number in range(1, 9)]
    holders(tmp_path, start.file(), known)
    allocator.free(weights[2])
    allocator.allocate(8999, "other")  # at the same address, with another size
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
    highest, step = (event for event in events if isinstance(event, Holders))
    assert highest.peak == max(allocator.figures) and highest.steps is None
    peak = Unpacked(highest)
    assert ("later", 1 << 30) in {(peak.name(span), peak.holding(span).size) for span in peak.alive(highest.peak_at)}
    found = Unpacked(step)
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
    """Return the bytes in use after each event of a trace, in chunks of 256 bytes."""
    sizes: list[int] = []
    in_use, figures = 0, []
    for part in parts:
        events = unpack(part.packed, TraceAllocations).events
        assert len(events) == part.events
        for who, value in events:
            if who & 1:
                in_use -= sizes[value]
            else:
                sizes.append(max(256, -(-value // 256) * 256))
                in_use += sizes[-1]
            figures.append(in_use)
    return figures


def test_what_python_returned_has_the_name_of_the_operation_that_called_it(tmp_path: Path) -> None:
    allocator = Allocator()
    window = allocator.window()
    allocator.allocate(300, "PyFunc", thread=3)
    began = allocator.now_ns + 1
    for thread in (3, 4):
        allocator.allocate(4096, thread=thread)
    allocator.allocate(4096, thread=3)
    data = window.file() + section(8, 1, struct.pack("<qqII", began, allocator.now_ns - 1, 3, 1))
    found = holders(tmp_path, data)
    assert [found.name(span) for span in found.spans] == ["PyFunc", "PyFunc", None, None]


def test_a_trace_says_which_thread_waits_for_which_allocations(tmp_path: Path) -> None:
    allocator = Allocator()
    window = allocator.window()
    runs: list[int] = []
    calls = []
    for run in (-(2**63), 5, 2**62):
        batch = allocator.allocate(1000, "Fill", thread=1)
        calls.append(Call(0, len(allocator.figures)))
        allocator.call(run, thread=1)
        allocator.call(run, thread=2)  # from within
        inner = [allocator.allocate(500, "MatMul", thread=2) for _ in range(3000)]
        allocator.run = 77  # of no call that was seen
        runs += [-1, *[len(calls) - 1] * 3000]
        for chunk in (*inner, batch):
            allocator.free(chunk, thread=1)
    data = window.file(pieces=3)
    parts = [
        event for event in made(tmp_path, data, window=told(data, opened=Opened.START)) if isinstance(event, Trace)
    ]
    course = course_of(parts)
    assert len(parts) > 1 and course.calls == calls and course.runs == runs


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
    course = course_of(parts)
    names = course.names
    assert len(names) == len(set(names)) == len({chunk.operation for chunk in allocator.made})
    requested = [value for who, value in course.events if not who & 1]
    asked = [
        (size, None if place < 0 else names[place]) for size, place in zip(requested, course.operations, strict=True)
    ]
    assert asked[len(weights) :] == [(chunk.requested, chunk.operation) for chunk in allocator.made]
    assert sum(len(encode(part)) for part in parts) < 8 * sum(part.events for part in parts)


def test_a_trace_goes_on_with_each_higher_window_once(tmp_path: Path) -> None:
    allocator, known = Allocator(), Known()
    weight = allocator.allocate(1 << 20, "Mul")
    first = allocator.window()
    allocator.free(allocator.allocate(1 << 20, "MatMul"))

    def added(data: bytes, opened: Opened, reading: Opened | None = None) -> list[Trace]:
        found = made(tmp_path, data, known, told(data, opened=opened, last=reading is None, reading=reading))
        return [event for event in found if isinstance(event, Trace)]

    assert added(first.file(), Opened.START, reading=Opened.ASKED)
    large = allocator.allocate(4 << 20, "MatMul")
    assert not added(first.file(), Opened.START, reading=Opened.WAITING), "it would come twice"
    parts = added(first.file(), Opened.START)
    allocator.free(large)
    later = allocator.window()
    allocator.allocate(8 << 20, "MatMul")
    allocator.free(weight)
    assert not added(later.file(), Opened.PEAK, reading=Opened.WAITING)
    parts += added(later.file(), Opened.PEAK)
    assert course_of(parts).requested == 9 << 20 and not added(later.file(), Opened.PEAK)


@pytest.mark.parametrize("device", ["GPU:0", "CPU:0"])
def test_a_trace_says_what_a_gpu_could_do_without(tmp_path: Path, device: str) -> None:
    """That is a convolution's scratch memory, and what it allocates to try algorithms. It is no other allocation."""
    allocator = Allocator()
    window = allocator.window()
    for number in range(12_000):  # so many that the trace has several parts
        allocator.free(allocator.allocate(100 + number % 7, "Relu"))
    with_scratch = [
        allocator.allocate(4000, "conv/convolution"),
        allocator.allocate(4 << 20, "conv/convolution", dtype=0, region=0),  # no region: allocated to try an algorithm
        allocator.allocate(3 << 20, "conv/convolution", dtype=4, region=2),  # temporary bytes
        allocator.allocate(500, "conv/convolution", dtype=1, region=2),
        allocator.allocate(6 << 20, "cluster_0/xla_run", dtype=0, region=0),
    ]
    data = window.file()
    events = made(tmp_path, data, window=told(data, opened=Opened.START, pools=[device]))
    parts = [event for event in events if isinstance(event, Trace)]
    course = course_of(parts)
    first = course.allocations - len(with_scratch)
    assert len(parts) > 2
    assert course.scratch == ([first + 1, first + 2] if device == "GPU:0" else [])


def test_what_xla_allocates_to_try_kernels_is_told_from_its_buffers(tmp_path: Path) -> None:
    """XLA compiles in the second step. Memory that it keeps beyond a step, or allocates in each step, is needed."""
    allocator = Allocator()
    window = allocator.window()
    tried = []
    for step in range(4):
        window.step()
        buffer = allocator.allocate(8 << 20, region=0)
        if step == 1:
            allocator.allocate(1 << 20, region=0)  # stays
            for size in (40 << 20, 40 << 20, 50 << 20):
                tried.append(len(allocator.made))
                allocator.free(allocator.allocate(size, region=0))
        if step == 3:  # it is not known whether the next step would allocate this again
            allocator.free(allocator.allocate(3 << 20, region=0))
        allocator.free(buffer)
        window.end_step()
    data = window.file()
    events = made(tmp_path, data, window=told(data, opened=Opened.START))
    course = course_of([event for event in events if isinstance(event, Trace)])
    assert len(course.steps) == 4 and course.scratch == tried


@pytest.mark.long
def test_of_what_is_too_large_for_an_event_the_largest_at_the_peak_are_told(tmp_path: Path) -> None:
    found = holders(tmp_path, large(6000, 10**9))
    event = found.event
    assert len(event.packed) <= MOST_PACKED
    assert len(found.holdings) <= 4096
    named = sum(found.holding(span).size for span in found.alive(event.peak_at) if found.name(span))
    assert 0.75 * event.peak < named == found.total(event.peak_at) <= event.peak
    assert all(total <= event.peak for total in found.course())
    assert decode_event(encode(event)) == event
