"""The number of steps and their pace follow from TensorFlow's counts of calls."""

import pytest

from tests import streams as s
from tests.streams import fold
from tfmemtop import events
from tfmemtop.reports.comparison_text import sentences
from tfmemtop.settings import Settings
from tfmemtop.state import State, apply
from tfmemtop.state.figures import figures
from tfmemtop.state.steps import RECENT_S, StepRate, pace


def counts(t: float, *functions: tuple[str, int, int], pid: int = 100, steps: int | None = 1) -> events.Functions:
    traced = [events.Traced(name, calls, traces, "/a/train.py", 7, steps) for name, calls, traces in functions]
    return events.Functions(t=t, pid=pid, functions=traced)


def rate(state: State) -> StepRate:
    """Return the pace of the newest run."""
    assert state.run is not None and state.run.steps is not None
    found = pace(state.run.steps, state.now)
    assert found is not None
    return found


def started(settings: Settings | None = None) -> list[events.Event]:
    return [s.session(), s.run(settings=settings), s.process(0.3, 100), s.hook(1.0, 100)]


def test_steps_are_the_calls_of_the_busiest_function() -> None:
    paced = [counts(5.1 + i, ("step", 1 + 10 * i, 1), ("validate", i, 1)) for i in range(60)]
    state = fold([*started(), *paced])
    assert (rate(state).unit, rate(state).count) == ("steps", 591)
    assert rate(state).recent == pytest.approx(10, abs=0.01)
    assert state.run is not None
    found = figures(state.run, state.now)
    assert found.first_step_s == 5.0 and found.steps == 591 and found.steps_per_s == 10.0


def test_the_pace_is_that_of_the_last_half_minute() -> None:
    slow = [counts(5.0 + i, ("step", 1 + i, 1)) for i in range(120)]
    fast = [counts(125.0 + i, ("step", 121 + 50 * i, 1)) for i in range(int(RECENT_S) + 1)]
    state = fold([*started(), *slow, *fast])
    assert rate(state).recent == pytest.approx(50, abs=0.5)
    assert rate(state).whole == pytest.approx(11, abs=1)
    apply(state, s.alive(300.0, 100))
    assert rate(state).recent == 0, "nothing has moved for minutes"


def test_calls_whose_steps_are_not_known_are_called_calls() -> None:
    for steps, unit, whole in ((None, "calls", 2.0), (8, "steps", 16.0)):
        state = fold([*started(), *(counts(5.0 + i, ("fit", 2 * i + 1, 1), steps=steps) for i in range(5))])
        assert (rate(state).unit, rate(state).whole) == (unit, whole)


def test_two_runs_differ_in_speed() -> None:
    def ran(each: int) -> State:
        return fold([*started(), *(counts(5.0 + i, ("step", 1 + each * i, 1)) for i in range(10))])

    quick, slow = ran(100), ran(90)
    assert quick.run is not None and slow.run is not None
    told = sentences(figures(quick.run, quick.now), figures(slow.run, slow.now))
    assert told[0].endswith("10% slower.") and "over the first 811 steps of each" in told[0]


def test_the_whole_course_is_kept_in_a_few_counts() -> None:
    state = fold([*started(), *(counts(5.0 + i, ("step", 1 + 10 * i, 1)) for i in range(10_000))])
    assert state.run is not None and state.run.steps is not None
    course = state.run.steps.busiest
    assert course is not None and len(course.whole.windows) <= 130
    for t in (5.0, 77.7, 4000.0, 10_004.0):
        assert abs(course.calls_at(t)[0] - (1 + 10 * (t - 5.0))) < 1
        assert abs(course.time_of(1 + 10 * (t - 5.0)) - t) < 0.1
    assert course.calls_at(1.0) == [1] and course.time_of(10**9) == 10_004.0


def test_a_pause_in_the_course_is_one() -> None:
    state = fold(
        [*started(), counts(5.0, ("step", 1, 1)), counts(6.0, ("step", 11, 1)), counts(100.0, ("step", 21, 1))]
    )
    assert state.run is not None and state.run.steps is not None and state.run.steps.busiest is not None
    assert state.run.steps.busiest.time_of(11) == 6.0
