"""The engine has each trace replayed while the script runs, and sends the table to its readers."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests import streams
from tests.patience import PATIENCE_S
from tests.streams import fold
from tests.whatif.conftest import Traced
from tests.whatif.traced import session
from tfmemtop.engine.sources.replays import Replays
from tfmemtop.engine.stream import Stream
from tfmemtop.events import Allocator, Event, HookEnd, HookEnding, Initialised, Replayed, RunEnd, Trace
from tfmemtop.experiments.session.whatif import ask
from tfmemtop.experiments.session.whatif import traced as traced_in
from tfmemtop.findings.missing import unreplayed_remedy, unreplayed_text
from tfmemtop.state.predicted import predicted

pytestmark = pytest.mark.tensorflow


async def replayed(events: list[Event]) -> Replayed:
    """Publish *events*, and return the replay that the engine publishes then."""
    stream, answers = Stream(), asyncio.Queue[Replayed]()
    replays = Replays(stream, set())
    replays.begin()
    stream.listen(lambda event: answers.put_nowait(event) if isinstance(event, Replayed) else None)
    try:
        for event in events:
            stream.publish(event)
        return await asyncio.wait_for(answers.get(), PATIENCE_S)
    finally:
        replays.close()


@pytest.fixture
def events(traced: Traced, tensorflow: tuple[Path, str], program: Path) -> list[Event]:
    # Figures come ten times a second, so the first ones come before the trace.
    *others, reading = session(*traced, *tensorflow)
    place = next(number for number, event in enumerate(others) if isinstance(event, Trace))
    return [*others[:place], reading, *others[place:]]


async def test_a_complete_trace_is_replayed_and_its_table_published(events: list[Event], traced: Traced) -> None:
    told = await replayed(events)
    assert not told.is_missing and told.present is not None
    assert (told.present.in_order.peak, told.present.limit) == (traced[1].peak, 4096 << 20)
    (view,) = predicted(fold([*events, told]))
    assert view.share == 1.0 and view.measured is not None and view.rows[0] is told.present
    # A screen can start a replay itself, with the same result.
    (pool,) = traced_in(fold(events))
    again = await ask(pool)
    assert (again.present, again.rows, again.smallest) == (told.present, told.rows, told.smallest)


async def test_what_cannot_be_replayed_says_why(events: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    told = await replayed(events)
    assert unreplayed_text(told) == "there is no C++ compiler" and unreplayed_remedy(told) and told.rows == []


async def test_of_a_script_that_has_ended_what_is_read_later_is_replayed(events: list[Event]) -> None:
    place = next(number for number, event in enumerate(events) if isinstance(event, Trace))
    told = await replayed([*events[:place], HookEnd(t=2.1, pid=100, reason=HookEnding.EXIT), *events[place:]])
    assert not told.is_missing and told.present is not None and told.present.limit == 4096 << 20


async def test_a_process_that_has_ended_is_known_while_its_trace_waits(events: list[Event]) -> None:
    known = [replace(event, device="GPU:0") if isinstance(event, Allocator | Trace) else event for event in events]
    trace = [event for event in known if isinstance(event, Trace)]
    variables = {"TF_ENABLE_GPU_GARBAGE_COLLECTION": "false"}
    made = Initialised(t=1.0, pid=100, file="train.py", line=3, variables=variables)
    others: list[Event] = []
    for pid in range(200, 220):
        others += streams.hook(3.0, pid), HookEnd(t=3.1, pid=pid, reason=HookEnding.EXIT)
    stream, answers = Stream(), asyncio.Queue[Replayed]()
    replays = Replays(stream, set())
    replays.begin()
    stream.listen(lambda event: answers.put_nowait(event) if isinstance(event, Replayed) else None)
    try:
        ended = HookEnd(t=2.1, pid=100, reason=HookEnding.EXIT)
        for event in [*known[: -len(trace)], made, streams.effective(1.0, 100), *trace, ended, *others]:
            stream.publish(event)
        told = await asyncio.wait_for(answers.get(), PATIENCE_S)
        assert told.present is not None
        assert (told.present.growth, told.present.collects, told.present.limit) == (True, False, 4096 << 20)
    finally:
        replays.close()


async def test_a_pool_whose_trace_goes_on_lets_others_go_first(events: list[Event]) -> None:
    def of(pid: int) -> list[Event]:
        return [replace(event, pid=pid) if getattr(event, "pid", None) == 100 else event for event in events]

    stream, answers = Stream(), asyncio.Queue[Replayed]()
    replays = Replays(stream, set())
    replays.begin()
    stream.listen(lambda event: answers.put_nowait(event) if isinstance(event, Replayed) else None)

    async def answered(*told: Event) -> int:
        for event in told:
            stream.publish(event)
        return (await asyncio.wait_for(answers.get(), PATIENCE_S)).pid

    trace = [event for event in events if isinstance(event, Trace)]
    try:
        assert await answered(*events) == 100
        assert await answered(*trace, *of(101)) == 101
        assert await answered(RunEnd(t=9.0, run=1, exit_code=0, signal=None)) == 100, "at the run's end nothing rests"
    finally:
        replays.close()
