"""The events that are kept for late readers: bounded, in order, and with every peak that matters."""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import streams as s
from tests import windows as w
from tfmemtop import events
from tfmemtop.engine.stream.backlog import POINTS, Backlog
from tfmemtop.events.recording import read


def kept_of(stream: Iterable[events.Event]) -> list[events.Event]:
    """Return what is kept of *stream*."""
    backlog = Backlog()
    for event in stream:
        backlog.add(event)
    return backlog.events()


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50), st.integers(1, 200))
def test_a_curve_keeps_its_highest_and_its_newest_in_bounded_space(pattern: list[int], repeats: int) -> None:
    told = [s.allocator(float(t), 1, in_use) for t, in_use in enumerate(pattern * repeats)]
    kept = kept_of(told)
    assert len(kept) <= POINTS + 2
    assert kept[-1] == told[-1]
    assert max(e.in_use or 0 for e in kept if isinstance(e, events.Allocator)) == max(pattern)
    times = [event.t for event in kept]
    assert times == sorted(set(times))


def test_a_day_of_readings_is_thinned_evenly() -> None:
    times = [event.t for event in kept_of(s.allocator(float(t), 1, 1) for t in range(86_400))]
    assert POINTS / 2 <= len(times) <= POINTS + 2
    assert max(b - a for a, b in pairwise(times)) <= 2 * 86_400 / (POINTS / 2)


def test_the_last_look_and_the_censuses_of_windows_are_kept_beside_the_newest_census() -> None:
    told = [
        events.Census(
            t=float(t), pid=1, kinds={}, largest=[], tensors=t if t in (1, 3) else None, window=t if t == 5 else 0
        )
        for t in range(100)
    ]
    kept = kept_of(told)
    assert len(kept) < 15 and all(told[t] in kept for t in (3, 5, 99))


def test_output_kept_is_the_newest_and_says_what_was_left_out() -> None:
    written = [f"{n:08}\n" for n in range(40_000)]
    told = [s.run(), *(events.Output(t=float(n), run=1, text=line) for n, line in enumerate(written))]
    kept = [event for event in kept_of(told) if isinstance(event, events.Output)]
    text = "".join(event.text for event in kept)
    assert "".join(written).endswith(text)
    assert 32 * 1024 < len(text) <= 64 * 1024
    assert sum(event.skipped for event in kept) + len(text) == sum(map(len, written))


def test_processes_that_came_and_went_are_forgotten() -> None:
    told = (event for pid in range(5000) for event in (s.process(float(pid), pid), s.alive(float(pid), pid)))
    assert [event.pid for event in kept_of(told) if isinstance(event, events.Process)] == [4999]


def test_curves_of_children_that_have_ended_are_kept_coarsely_and_with_their_peak() -> None:
    told = [s.run(pid=1), s.process(0.2, 1), s.process(0.2, 2), s.hook(0.3, 1), s.hook(0.3, 2), s.alive(0.5, 1, 2)]
    told += [s.allocator(1.0 + t, pid, 900 if t == 77 else t) for t in range(500) for pid in (1, 2)]
    kept = [event for event in kept_of([*told, s.alive(600.0)]) if isinstance(event, events.Allocator)]
    curves = {pid: [event.in_use or 0 for event in kept if event.pid == pid] for pid in (1, 2)}
    assert len(curves[1]) == 500  # the run's own process, whose curve a late reader needs whole
    assert len(curves[2]) <= 62
    assert max(curves[2]) == 900
    assert curves[2][-1] == 499


def test_counts_of_functions_keep_the_first_and_the_newest() -> None:
    counted = [
        events.Functions(t=float(t), pid=1, functions=[events.Traced("step", t, 1, "a.py", 1)]) for t in range(500)
    ]
    kept = kept_of(counted)
    assert kept[0] == counted[0] and kept[1:] == counted[-len(kept) + 1 :]
    assert 30 <= len(kept) <= 60


def test_the_window_of_the_highest_peak_is_kept_however_many_follow() -> None:
    told = [w.step(rows=4096 if t == 2 else 1024).done(t=float(t)) for t in range(20)]
    kept = kept_of(told)
    assert told[2] in kept and told[0] in kept and kept[-1] == told[-1] and len(kept) < 10


def known(stream: Iterable[events.Event]) -> dict[str, object]:
    """Return what a screen shows of the runs and their processes after *stream*."""
    state = s.fold(stream)
    hooked = {pid: process.hooked for pid, process in state.processes.items() if process.hooked}
    return {
        "runs": [(r.run, r.ending, r.peak_in_use, r.peak_pool, r.out_of_memory) for r in state.runs],
        "notices": state.notices,
        "devices": [device.reading for device in state.devices.values()],
        "processes": state.processes.keys(),
        "asked": {pid: (list(one.requested), one.initialised, one.effective) for pid, one in hooked.items()},
        "held": {pid: (one.allocators, one.census, one.look, list(one.out_of_memory)) for pid, one in hooked.items()},
        "pools": {pid: {name: pool.map for name, pool in one.pools.items()} for pid, one in hooked.items()},
        "windows": {pid: (one.windows, one.lines, one.clusters) for pid, one in hooked.items()},
        "failures": {pid: one.failure for pid, one in hooked.items()},
        "probes": {pid: (one.probe, one.without_probe, one.ended) for pid, one in hooked.items()},
    }


RECORDINGS = Path(__file__).parents[1] / "recordings"


@pytest.mark.parametrize(
    "name", ["cpu-demo", "cpu-attached", "h100-resnet-xla", "h200-four-cards", "h200-runs", "leaks/leak", "seeds/twins"]
)
def test_a_late_reader_knows_what_an_early_one_knows(name: str) -> None:
    told = list(read(RECORDINGS / f"{name}.jsonl").events())
    assert known(kept_of(told)) == known(told)
