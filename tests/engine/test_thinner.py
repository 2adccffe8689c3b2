"""What is recorded of every session: all that is new while there is room, and each new peak until the end."""

import asyncio
from itertools import pairwise
from pathlib import Path

from msgspec import structs

from tests import streams as s
from tests.patience import PATIENCE_S
from tests.streams import MIB
from tfmemtop import events as ev
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.stream.recorder import SAME_AGAIN_S, Recorder, Thinner
from tfmemtop.events.recording import RecordingError, Writer, read
from tfmemtop.findings.review import review, weighed
from tfmemtop.findings.rules.notices import Noticed, say


def kept(thinner: Thinner, events: list[ev.Event]) -> list[ev.Event]:
    return [found for event in events if (found := thinner(event)) is not None]


def reading(t: float, in_use: int, device: str = "GPU:0") -> ev.Allocator:
    return s.allocator(t, 7, in_use, name=device)


def test_readings_that_say_nothing_new_are_taken_now_and_then() -> None:
    idle = [reading(n / 10, 5) for n in range(1000)]
    other = [reading(n / 10 + 0.05, n % 7, "GPU:1") for n in range(1000)]
    found = kept(Thinner(), sorted([*idle, *other], key=lambda event: event.t))
    assert [event for event in found if event in other] == other
    assert [event.t for event in found if event in idle] == [n * SAME_AGAIN_S for n in range(10)]


def test_as_it_grows_readings_are_further_apart_and_no_peak_is_lost() -> None:
    thinner, counts = Thinner(64 * MIB), []
    for size in (0, 31, 32, 48, 56, 60, 63):
        assert thinner.grown(size * MIB)
        begin = 1000.0 * size
        events: list[ev.Event] = [reading(begin + n / 10, n % 50) for n in range(1000)]
        peak = reading(begin + 59.95, 1000 + size)
        found = kept(thinner, [*events[:600], peak, *events[600:]])
        assert peak in found
        counts.append(len(found))
    assert counts[0] == counts[1] == 1001
    assert all(later <= earlier / 2 for earlier, later in pairwise(counts[1:5]))
    assert not thinner.grown(64 * MIB)


def test_what_was_in_use_between_two_recorded_readings_is_told_by_the_second() -> None:
    thinner = Thinner()
    thinner.spacing_s = 1.0
    events: list[ev.Event] = [reading(n / 4, 700 - n if n % 4 == 2 else 100 + n) for n in range(1, 41)]
    events[15] = structs.replace(events[15], high=800)  # at 4.0 s
    found = [event for event in kept(thinner, [reading(0.0, 900), *events]) if isinstance(event, ev.Allocator)]
    assert [event.t for event in found] == list(range(11))
    assert [(event.in_use, event.high) for event in found[1:4]] == [(104, 698), (108, 694), (112, 690)]
    assert found[4] is events[15], "it tells of more itself"
    assert found[5].high == 682
    same = [reading(100 + n / 10, 50) for n in range(3)]
    assert kept(Thinner(), [*same, reading(100.4, 40)])[-1] == structs.replace(reading(100.4, 40), high=50)


def test_what_happens_once_is_always_kept() -> None:
    thinner = Thinner(64 * MIB)
    thinner.grown(63 * MIB)
    events: list[ev.Event] = [
        *(s.run(n, number=n) for n in range(1, 50)),
        *(ev.OutOfMemory(t=n, pid=7, message="no") for n in range(60, 90)),
    ]
    assert kept(thinner, events) == events


def test_a_flood_of_output_is_cut_and_says_how_much() -> None:
    flood = [ev.Output(t=n / 100, run=1, text="é" * 5000) for n in range(10_000)]
    last = ev.Output(t=101.0, run=1, text="Traceback")
    found = [event for event in kept(Thinner(), [*flood, last]) if isinstance(event, ev.Output)]
    told = sum(len(event.text.encode()) for event in found)
    assert 256 * 1024 < told < 1_000_000
    assert told + sum(event.skipped for event in found) == 10_000 * 10_000 + len("Traceback")
    assert found[-1].text == "Traceback"


async def test_one_that_has_grown_too_large_ends_and_its_last_line_says_at_which_size(tmp_path: Path) -> None:
    stream, told = Stream(), asyncio.get_running_loop().create_future()
    stream.listen(lambda event: told.set_result(event) if isinstance(event, ev.Notice) else None)
    recorder = Recorder(stream, lambda: Writer(tmp_path / "run.jsonl"), Thinner(MIB))
    recorder.begin()
    stream.publish(s.session())
    stream.publish(s.run(0.0))
    for n in range(30):
        stream.publish(ev.OutOfMemory(t=n, pid=7, message="x" * 40_000))
    notice = await asyncio.wait_for(told, PATIENCE_S)
    assert "run.jsonl has stopped: it has grown to 1 MiB; --record FILE has no limit" in say(notice).text
    assert isinstance(recorder.trouble, RecordingError) and "it has grown to" in str(recorder.trouble)
    await recorder.close()
    seen = review(read(tmp_path / "run.jsonl").events())
    assert Noticed(notice) in [held.finding for held in weighed(seen)]
