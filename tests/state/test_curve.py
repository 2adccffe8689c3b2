"""The curve of a run is bounded, however long the run takes, and loses no peak and no place of a peak."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from tests import streams as s
from tfmemtop import events
from tfmemtop.state.history import CELLS, Curve
from tfmemtop.state.model import RUNS_KEPT

READINGS = st.lists(st.tuples(st.floats(0, 3e5), st.integers(0, 2**40)), min_size=1, max_size=60)


@given(READINGS)
def test_every_peak_stays_in_its_column(readings: list[tuple[float, int]]) -> None:
    curve, highest = Curve(), 0
    for t, size in sorted(readings):
        curve.add(t, (size, size + 1, size + 2))
        highest = max(highest, size)
    width_s = curve.width_s * (1 + int(curve.end / curve.width_s / CELLS))
    columns = curve.columns(width_s, 2 * CELLS, 0)
    assert max(size for size in columns if size is not None) == highest
    t, size = max(sorted(readings), key=lambda reading: reading[1])
    assert columns[int(t / width_s)] == size
    assert max(size or 0 for size in curve.columns(width_s * CELLS / 7, 14, 2)) == highest + 2


def test_a_run_of_days_takes_no_more_room_than_one_of_minutes() -> None:
    curve = Curve()
    for second in range(0, 300_000, 7):
        curve.add(float(second), (second, second, second))
    assert len(pickle.dumps(curve)) < CELLS * (3 * 8 + 32)
    columns = curve.columns(300_000 / 200, 200, 1)
    assert None not in columns
    assert columns == sorted(columns, key=lambda size: size or 0)


def test_what_was_read_last_holds_until_the_next_reading() -> None:
    curve = Curve()
    curve.add(1.0, (5, 5, 5))
    curve.add(3.0, (2, 2, 2))
    assert curve.columns(0.5, 8, 0) == [None, None, 5, 5, 5, 5, 2, None]


def test_each_run_keeps_its_own_curve_and_what_it_held_on_the_fullest_gpu() -> None:
    state = s.fold(
        [
            s.session(),
            s.run(t=10.0),
            s.device(0),
            s.device(1),
            s.process(10.1, 100),
            s.hook(10.2, 100),
            s.effective(10.3, 100, "GPU:0", "GPU-0"),
            s.effective(10.3, 100, "GPU:1", "GPU-1"),
            s.allocator(11.0, 100, in_use=3 * s.GIB, pool=4 * s.GIB, name="GPU:0"),
            s.allocator(11.0, 100, in_use=1 * s.GIB, pool=6 * s.GIB, name="GPU:1"),
            s.device_reading(12.0, {100: 5 * s.GIB}, index=0),
            s.device_reading(12.0, {100: 7 * s.GIB}, index=1),
            events.RunEnd(t=13.0, run=1, exit_code=0, signal=None),
            s.run(t=20.0, number=2, pid=200),
            s.device_reading(21.0, {}, index=0),
        ]
    )
    first, second = state.runs
    assert [first.curve.columns(1.0, 3, boundary)[-1] for boundary in range(3)] == [3 * s.GIB, 6 * s.GIB, 7 * s.GIB]
    assert second.curve.columns(1.0, 2, 2) == [None, 0]


def test_a_session_of_many_runs_keeps_the_newest() -> None:
    starts = [s.run(t=float(number), number=number, pid=number) for number in range(1, RUNS_KEPT + 11)]
    state = s.fold([s.session(), *starts])
    assert [run.run for run in state.runs] == list(range(11, RUNS_KEPT + 11))
    # A run whose end no event reported ends when the next run begins.
    assert state.runs[0].ended == state.runs[1].started and state.runs[-1].going
