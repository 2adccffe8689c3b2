"""The findings about a process that tfmemtop did not start, and what they must not claim."""

import msgspec
import pytest

from tests import streams as s
from tfmemtop import events
from tfmemtop.events import InjectionState, OutsideState
from tfmemtop.findings.attached import ReadFromOutside, injection_sentence, offer, refusal, say_state
from tfmemtop.findings.devices import NoGpuSeen
from tfmemtop.findings.ending import RunEnded
from tfmemtop.findings.finding import Severity
from tfmemtop.findings.outside import HeldBeside
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.rules import findings
from tfmemtop.state import State, apply
from tfmemtop.state.lookup import hook_put_in
from tfmemtop.state.outcome import outcome
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
    early = [
        told(0.2, OutsideState.NO_TENSORFLOW),
        events.Injection(t=0.25, pid=100, state=InjectionState.ASKED),
        s.process(0.3, 100),
    ]
    (found,) = [one for one in findings(s.fold([s.session(), run, *early])) if isinstance(one, ReadFromOutside)]
    assert found.told is early[0] and found.injection is early[1]


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
    assert [remedy.action for remedy in ended.remedies] == [Action.QUIT]
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


def test_of_a_process_that_the_hook_was_put_into_it_is_said_what_is_still_unknown() -> None:
    asked = events.Injection(t=1.1, pid=100, state=InjectionState.ASKED)
    state = folded(told(1.0, OutsideState.READING), asked, s.allocator(1.2, 100, in_use=GIB))
    [found] = [one for one in findings(state) if isinstance(one, ReadFromOutside)]
    assert "has not done so yet" in found.said.text and "Not known from outside" in found.said.figures
    assert found.severity is Severity.INFO and not hook_put_in(state)

    for event in (s.hook(2.0, 100), told(2.1, OutsideState.HOOKED), s.allocator(2.2, 100, in_use=GIB)):
        apply(state, event)
    [found] = [one for one in findings(state) if isinstance(one, ReadFromOutside)]
    assert "the hook is in it" in found.said.text and "Not known from outside" not in found.said.figures
    assert hook_put_in(state) and waiting(state) is None and state.run is not None and state.run.hooked == 2.0

    # The hook has been lost, and the process is read from outside again.
    apply(state, events.HookEnd(t=3.0, pid=100, reason=events.HookEnding.LOST))
    apply(state, told(3.1, OutsideState.READING))
    assert not hook_put_in(state)


@pytest.mark.parametrize("state", InjectionState)
def test_each_reason_why_the_hook_is_not_put_in_has_words(state: InjectionState) -> None:
    event = events.Injection(t=1.0, pid=100, state=state, detail="3.13")
    text = injection_sentence(event)
    assert "{" not in text and text.endswith(".") and text.count("tfmemtop --") < 2
    assert refusal(100, state, "3.13").count("\n") == 0
    found = folded(told(0.9, OutsideState.READING), event)
    [one] = [one for one in findings(found) if isinstance(one, ReadFromOutside)]
    assert one.severity is (Severity.INFO if state.under_way else Severity.WARNING)


def test_the_hook_is_offered_only_where_python_lets_it_in() -> None:
    for python, offered in (("3.14", True), ("3.15", True), ("3.13", False), ("", False)):
        assert bool(offer(msgspec.structs.replace(told(1.0, OutsideState.READING), python=python))) is offered
