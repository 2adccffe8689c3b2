"""Which events of a trace wait for which: a thread that calls a function goes on when its run has ended."""

from tests.whatif.traced import parts
from tfmemtop.events.allocations import Call
from tfmemtop.experiments.whatif.course import Course, course_of, runs_of
from tfmemtop.experiments.whatif.replayer import Follows, Runs

PYTHON, POOL = 0, 1  # threads


def allocates(thread: int) -> tuple[int, int]:
    return thread << 1, 256


def frees(thread: int, allocation: int) -> tuple[int, int]:
    return thread << 1 | 1, allocation


def trace(events: list[tuple[int, int]], runs: list[int], calls: list[Call]) -> Course:
    return Course(
        pid=1,
        device="CPU:0",
        events=events,
        steps=[],
        names=[],
        operations=[-1] * len(runs),
        scratch=[],
        requested=0,
        kept=None,
        lost=0,
        whole=True,
        calls=calls,
        runs=runs,
    )


def test_a_caller_goes_on_when_the_run_has_ended() -> None:
    events = [
        allocates(PYTHON),
        allocates(POOL),
        allocates(PYTHON),
        frees(PYTHON, 0),
        allocates(POOL),
        frees(PYTHON, 3),
    ]
    runs = [-1, 0, 0, 1]  # a part of the first run is made in the calling thread
    found = runs_of(trace(events, runs, [Call(PYTHON, 1), Call(PYTHON, 4)]))
    assert found == Runs(runs, [Follows(0, event=0, before=-1, after=3), Follows(1, event=3, before=0, after=5)])


def test_a_run_that_allocates_nothing_is_not_waited_for() -> None:
    events = [allocates(PYTHON), allocates(POOL), frees(PYTHON, 0)]
    found = runs_of(trace(events, [-1, 1], [Call(PYTHON, 0), Call(PYTHON, 1)]))
    assert found.order == [Follows(1, event=0, before=-1, after=2)]


def test_a_thread_that_does_not_wait_says_nothing_of_any_of_its_runs() -> None:
    events = [allocates(POOL), frees(POOL, 0), allocates(POOL), allocates(PYTHON), allocates(POOL)]
    assert runs_of(trace(events, [0, 1, -1, 1], [Call(PYTHON, 0), Call(PYTHON, 2)])) == Runs()


def test_a_function_that_is_called_within_another_says_nothing() -> None:
    events = [allocates(PYTHON), allocates(POOL), allocates(POOL), allocates(POOL), frees(PYTHON, 0)]
    assert runs_of(trace(events, [-1, 0, 1, 0], [Call(PYTHON, 1), Call(PYTHON, 2)])) == Runs()


def test_threads_that_call_functions_do_not_wait_for_each_other() -> None:
    other = 2
    events = [allocates(POOL), allocates(other), allocates(POOL), frees(PYTHON, 0), frees(other, 2)]
    found = runs_of(trace(events, [0, 1, 0], [Call(PYTHON, 0), Call(other, 1)]))
    assert sorted(found.order) == [Follows(0, -1, -1, after=3), Follows(1, -1, -1, after=4)]


def test_what_tensorflow_records_is_understood() -> None:
    lines = [
        "10 5 MemoryAllocation#requested_bytes=8,addr=1,tf_op=Fill,id=3,region_type=output#",
        "10 6 FunctionRun#id=-4,_r=1#",
        "20 7 MemoryAllocation#requested_bytes=8,addr=2,tf_op=MatMul,id=-4,region_type=output#",
        "20 8 MemoryDeallocation#requested_bytes=8,addr=2,tf_op=,id=0#",
        "10 9 MemoryDeallocation#requested_bytes=8,addr=1,tf_op=,id=0#",
    ]
    course = course_of(parts(lines))
    assert (course.calls, course.runs) == ([Call(0, 1)], [-1, 0])
    assert runs_of(course).order == [Follows(0, event=0, before=-1, after=3)]
