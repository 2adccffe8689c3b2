"""Histories and curves are bounded, and lose no peak and no place of one, however long a run takes.

The layers of a history never cross, and its complete columns never change.
"""

import pickle
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import streams as s
from tfmemtop import events
from tfmemtop.state.history import CELLS, Curve, History, Sample, Trend
from tfmemtop.state.model import RUNS_KEPT

SPANS_S = (60.0, 300.0, 900.0, 3600.0, 21_600.0, 86_400.0, 259_200.0)
SIZES = st.lists(st.integers(0, 200 << 30), min_size=4, max_size=4).map(lambda sizes: tuple(sorted(sizes)))
GAPS_S = st.one_of(st.floats(0, 0.5), st.floats(0, 100), st.floats(0, 100_000))
READINGS = st.lists(st.tuples(GAPS_S, SIZES), min_size=1, max_size=60)


def filled(readings: list[tuple[float, Sample]]) -> tuple[History, list[tuple[float, Sample]]]:
    history, t, timed = History(), 0.0, []
    for gap, sample in readings:
        t += gap
        history.add(t, sample)
        timed.append((t, sample))
    return history, timed


@given(READINGS, st.sampled_from(SPANS_S), st.integers(1, 512), st.floats(0, 1000))
def test_boundaries_never_cross_and_no_peak_is_lost(
    readings: list[tuple[float, Sample]], span_s: float, count: int, idle_s: float
) -> None:
    history, timed = filled(readings)
    end = timed[-1][0] + idle_s
    columns = s.columns(history, span_s, count, end)
    assert len(columns) == count
    for column in columns:
        assert column is None or all(lower <= upper for lower, upper in pairwise(column))
    width = span_s / count
    begin = (int(end / width) - count + 1) * width
    for layer in range(4):
        seen = [sample[layer] for t, sample in timed if t >= begin]
        if seen:
            assert max(column[layer] for column in columns if column) >= max(seen)
        assert max((column[layer] for column in columns if column), default=0) <= max(s[layer] for _, s in timed)


@given(READINGS, st.sampled_from(SPANS_S), st.integers(1, 512), READINGS)
def test_a_complete_column_stays_as_it_is(
    readings: list[tuple[float, Sample]], span_s: float, count: int, later: list[tuple[float, Sample]]
) -> None:
    history, timed = filled(readings)
    t, width = timed[-1][0], span_s / count
    complete = history.complete_before(span_s, width, t)
    first = complete - count
    before = history.read(span_s, width, first, complete)
    for gap, sample in later:
        t += gap
        history.add(t, sample)
        oldest = history.newest_column(width, t) - count + 1  # older ones may have been dropped
        if oldest < complete:
            still = history.read(span_s, width, max(first, oldest), complete)
            assert still == before[max(0, oldest - first) :]
        assert history.complete_before(span_s, width, t) >= complete


def test_a_reading_holds_until_the_next_however_far_away() -> None:
    history = History()
    history.add(10.0, (5, 7))
    assert s.columns(history, 60, 60, 12.0)[-3:] == [(5, 7), (5, 7), (5, 7)]
    assert s.columns(history, 60, 60, 12.0)[:50] == [None] * 50
    assert s.columns(history, 60, 60, 1e6) == [(5, 7)] * 60
    history.add(1e6, (1, 2))
    assert s.columns(history, 60, 60, 1e6) == [(5, 7)] * 59 + [(1, 2)]


def test_memory_is_the_same_after_days() -> None:
    def size(history: History) -> int:
        return sum(
            sys.getsizeof(level.ids) + sys.getsizeof(level.highest) + sys.getsizeof(level.before)
            for level in history._levels
        )

    history = History()
    for second in range(300):
        history.add(float(second), (second, second, second, second))
    assert size(history) < 300_000, "a session of five minutes"
    for tick in range(0, 130 * 86_400, 800):
        history.add(float(tick), (tick, tick + 1, tick + 2, 1 << 40))
        if tick == 100 * 86_400:
            after_100_days = size(history)
    assert size(history) == after_100_days < 1_300_000


def test_a_run_of_a_month_is_known_from_its_first_hour_on() -> None:
    history = History()
    for hour in range(30 * 24):
        history.add(hour * 3600.0, (9 if hour in (1, 718) else 1,))
    columns = s.columns(history.last(30 * 86_400.0), 30 * 86_400.0, 100, 719 * 3600.0)
    assert [at for at, column in enumerate(columns) if column == (9,)] == [0, 99]


def test_absurd_figures_of_a_damaged_recording_are_held_within_bounds() -> None:
    history = History()
    history.add(1e300, (-5, 1 << 80))
    history.add(-1.0, (0, 1))
    assert s.columns(history, 60, 2, 1e300)[-1] == (0, 2**63 - 1)
    with pytest.raises(ValueError, match="3, 2"):
        history.add(1e300, (1, 2, 3))


def test_a_trend_of_days_keeps_its_lows_and_highs_in_a_few_windows() -> None:
    trend = Trend()
    for second in range(0, 200_000, 5):
        trend.add(float(second), 100 + second % 7, 200 + (1000 if second == 77_775 else 0))
    windows = trend.whole.windows
    assert len(windows) <= 128 and windows[0].start == 0.0 and windows[-1].start > 190_000
    assert {window.low for window in windows} == {100}
    (spike,) = [window for window in windows if window.high == 1200]
    assert spike.start <= 77_775 < spike.start + trend.whole.width_s
    kept = trend.copy()
    trend.add(200_000.0, 1, 1)
    assert kept.whole.windows[-1].low == 100 and trend.whole.windows[-1].low == 1, "a copy stays as it is"


LONG_READINGS = st.lists(st.tuples(st.floats(0, 3e5), st.integers(0, 2**40)), min_size=1, max_size=60)


@given(LONG_READINGS)
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
    curve.add(3.01, (1, 1, 1))  # so soon after a higher one, it does not hide that
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
