"""The findings about a process that tfmemtop did not start, and what they must not claim."""

import msgspec
import pytest

from tests import streams as s
from tfmemtop import events
from tfmemtop.events import OutsideState
from tfmemtop.findings.finding import Severity
from tfmemtop.findings.judgement import findings
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.rules.attached import ReadFromOutside, say_state
from tfmemtop.findings.rules.devices import NoGpuSeen
from tfmemtop.findings.rules.ending import RunEnded
from tfmemtop.findings.rules.outside import HeldBeside
from tfmemtop.state import State, apply
from tfmemtop.state.figures import outcome
from tfmemtop.state.waiting import Stage, waiting

GIB = 1 << 30


def told(t: float, state: OutsideState, detail: str = "") -> events.Outside:
    return events.Outside(t=t, pid=100, state=state, detail=detail, tensorflow="2.21.0")


def folded(*more: events.Event) -> State:
    state = State()
    run = msgspec.structs.replace(s.run(), outside=True)
    for event in (s.session(), run, s.device(), s.process(0.3, 100), *more):
        apply(state, event)
    return state


@pytest.mark.parametrize("state", OutsideState)
def test_each_state_is_told_and_only_what_nobody_can_wait_for_is_a_warning(state: OutsideState) -> None:
    found = [one for one in findings(folded(told(1.0, state))) if isinstance(one, ReadFromOutside)]
    over = state in (OutsideState.GONE, OutsideState.LEFT)
    assert bool(found) is not over
    for one in found:
        assert one.severity is (Severity.INFO if state.may_change else Severity.WARNING)
    text, remedy = say_state(told(1.0, state, "7"))
    assert text and "{" not in text + remedy and not text.endswith(".")


def test_a_process_that_is_read_before_it_is_first_seen_is_told_too() -> None:
    run = msgspec.structs.replace(s.run(), outside=True)
    early = [told(0.2, OutsideState.NO_TENSORFLOW), s.process(0.3, 100)]
    (found,) = [one for one in findings(s.fold([s.session(), run, *early])) if isinstance(one, ReadFromOutside)]
    assert found.told is early[0]


def test_nothing_is_claimed_that_only_a_hook_can_know() -> None:
    effective = msgspec.structs.replace(s.effective(1.1, 100, "CPU:0", uuid=None), growth=True)
    pool = s.allocator(1.2, 100, in_use=GIB, name="CPU:0")
    # TensorFlow uses the CPU although there is a GPU: the script may have hidden the GPU itself.
    state = folded(told(1.0, OutsideState.READING), effective, pool, s.alive(60.0, 100))
    assert not any(isinstance(one, NoGpuSeen) for one in findings(state))
    # The memory that the process holds on a GPU may be TensorFlow's own, which cannot be read.
    state = folded(told(1.0, OutsideState.NO_TABLE), s.device_reading(50.0, {100: GIB}), s.alive(60.0, 100))
    assert not any(isinstance(one, HeldBeside) for one in findings(state))


def test_its_end_is_told_without_offering_to_start_it_again() -> None:
    end = events.RunEnd(t=9.0, run=1, exit_code=None, signal=None)
    state = folded(told(1.0, OutsideState.READING), told(8.9, OutsideState.GONE, "123"), end)
    [ended] = [one for one in findings(state) if isinstance(one, RunEnded)]
    assert ended.remedies == (Action.QUIT,)
    [left] = [one for one in findings(state) if isinstance(one, ReadFromOutside)]
    assert "process 123" in say_state(left.told).text


def test_until_there_is_a_pool_the_screen_says_how_far_it_is() -> None:
    state = folded(told(1.0, OutsideState.NO_DEVICES))
    waits = waiting(state)
    assert waits is not None and waits.stage is Stage.OUTSIDE and waits.outside is not None
    apply(state, told(2.0, OutsideState.READING))
    apply(state, s.effective(2.1, 100))
    apply(state, s.allocator(2.2, 100, in_use=GIB))
    assert waiting(state) is None
    hooked = state.processes[100].hooked
    assert hooked is not None and hooked.outside and not hooked.ended
    apply(state, told(3.0, OutsideState.EXECUTED, "bash"))
    assert hooked.ended


def test_one_that_was_left_is_no_run_whose_end_is_unknown() -> None:
    state = folded(told(1.0, OutsideState.READING), told(5.0, OutsideState.LEFT))
    assert state.run is not None and state.run.left and state.run.going
    stream = [msgspec.structs.replace(s.run(), outside=True), told(5.0, OutsideState.LEFT)]
    assert outcome(stream).left and not outcome([*stream, s.run(6.0, 2)]).left
