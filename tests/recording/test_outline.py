"""An outline of a recording: what is known by two readings together is known by it too."""

import math
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests import streams as s
from tests import windows as w
from tfmemtop.engine.stream.recorder import Thinner
from tfmemtop.events import Allocator, DeviceReading, Event
from tfmemtop.events.recording import read
from tfmemtop.events.recording.outline import outlined
from tfmemtop.state import State, apply
from tfmemtop.state.model import Context

RECORDINGS = Path(__file__).parents[1] / "recordings"


def contexts(stream: Iterable[Event]) -> dict[tuple[int, int], tuple[int | None, bool]]:
    """The CUDA contexts of all processes, by process and GPU: bytes, and whether they were measured."""
    state, seen = State(), dict[tuple[int, int], Context]()
    for event in stream:
        apply(state, event)
        for pid, process in state.processes.items():
            if process.hooked:
                seen |= {(pid, gpu): context for gpu, context in process.hooked.contexts.items()}
    return {place: (context.size, context.exact) for place, context in seen.items()}


@pytest.mark.parametrize("spacing_s", [0.0, 0.4, 1.0, 4.0])
@pytest.mark.parametrize("name", ["h100-transformer", "h200-four-cards", "h200-settings", "h200-two-cards"])
def test_it_tells_the_same_contexts(name: str, spacing_s: float) -> None:
    thinner = Thinner()
    thinner.spacing_s = spacing_s
    whole = [kept for event in read(RECORDINGS / f"{name}.jsonl").events() if (kept := thinner(event)) is not None]
    known = contexts(whole)
    assert known and contexts(outlined(whole, math.inf)) == known


def card(t: float, used: int, *pids: int) -> DeviceReading:
    return replace(s.device_reading(t, dict.fromkeys(pids, used)), used=used)


def test_the_first_reading_with_other_processes_stays_and_what_the_allocators_tell_then() -> None:
    readings: list[Event] = [s.allocator(n / 10, 100, 50) for n in range(1, 120)]
    cards: list[Event] = [card(n + 0.55, 1000, *(100, 7)[: n // 4]) for n in range(12)]
    found = list(outlined(sorted([*readings, *cards], key=lambda event: event.t), math.inf))
    assert [event.t for event in found if isinstance(event, DeviceReading)] == [0.55, 4.55, 8.55, 10.55, 11.55]
    assert [event.t for event in found if isinstance(event, Allocator)] == [0.1, 0.6, 4.6, 8.6, 10.0, 11.9]


def test_what_the_allocators_tell_after_the_first_reading_since_devices_were_made_stays() -> None:
    cards: list[Event] = [card(float(n), 1000, 100) for n in range(10)]
    readings: list[Event] = [s.allocator(n + number / 10, 100, 50) for n in range(10) for number in (3, 6)]
    stream = sorted([*cards, *readings, s.effective(5.5, 100)], key=lambda event: event.t)
    found = [event.t for event in outlined([*stream, card(11.0, 1000, 100)], math.inf) if event.t > 5.5]
    assert found == [5.6, 6.0, 6.3, 11.0]


def test_the_first_reading_with_another_size_of_the_pool_stays() -> None:
    sizes = [10, 10, 10, 20, 20, 40, 40, 20, 20]
    found = list(outlined([s.allocator(float(n), 100, 5, pool=size) for n, size in enumerate(sizes)], math.inf))
    assert [event.t for event in found] == [0.0, 3.0, 5.0, 7.0, 8.0]


def test_the_window_with_the_highest_peak_stays_however_close_to_another() -> None:
    window = w.step().done()
    stream = [replace(window, t=20.0 * n, peak=peak) for n, peak in enumerate([5000, 9000, 4000, 9001, 300, 200])]
    assert [event.t for event in outlined(stream, math.inf)] == [0.0, 20.0, 100.0]
