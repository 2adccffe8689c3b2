"""The course of a trace: which allocations TensorFlow can do without, and which events wait for which."""

from typing import NamedTuple

from tests.whatif.traced import parts
from tfmemtop.engine.sources.pool_replay import Alike, Life, PoolCourse
from tfmemtop.engine.sources.trace_events import Tracer
from tfmemtop.events.allocations import FOREVER, Call
from tfmemtop.experiments.whatif.course import Course, course_of, runs_of
from tfmemtop.experiments.whatif.replayer import Follows, Runs
from tfmemtop.units import MIB

NONE, OUTPUT, TEMP = 0, 1, 2  # regions, as the probe numbers them
REDZONES = 16 * MIB


class Made(NamedTuple):
    """An allocation of *size* bytes; *until* is how many further allocations are made before it is freed."""

    size: int
    operation: str = ""
    region: int = NONE
    until: int = 0


def spared(made: list[Made], steps: list[int]) -> tuple[list[int], list[int]]:
    """Return the numbers of those of *made* that are scratch memory, and that are for kernels that were not taken.

    *steps* are the numbers of the allocations with which a step begins.
    """
    lives: list[Life] = []
    frees: dict[int, list[Life]] = {}
    event = 0
    begins = []
    for number, one in enumerate(made):
        begins += [event] if number in steps else []
        dtype = 4 if one.region == TEMP else 1
        alike = Alike(one.operation, "", dtype, one.region, one.size, one.size, 1)
        lives.append(Life(alike, number, event))
        frees.setdefault(number + one.until, []).append(lives[-1])
        event += 1
        for life in frees.pop(number, []):
            life.end = event
            event += 1
    assert all(life.end != FOREVER for life in lives)
    course = PoolCourse(0, lives, at_ns=list(range(event)), in_use=[0] * event)
    found = course_of(Tracer(1, "GPU:0").trace(course, begins, [], whole=True, t=0.0))
    return list(found.scratch), list(found.untaken)


def convolution(name: str, taken: int, *tried: int) -> list[Made]:
    """Return what a convolution makes: its output, a second output between red zones, trials, and what it takes."""
    trials = [Made(REDZONES + size, name) for size in tried]
    used = [Made(taken, name, TEMP)] if taken else []
    wrapped = Made(REDZONES + MIB, name, until=len(trials))
    return [Made(MIB, name, OUTPUT, until=len(trials) + len(used) + 1), wrapped, *trials, *used]


def test_a_convolution_takes_one_of_the_algorithms_that_it_tries() -> None:
    scratch, untaken = spared(convolution("conv", 8 * MIB, 0, 8 * MIB, 8 * MIB + 1024, 40 * MIB), [0])
    assert scratch == [1, 3, 4, 5, 6] and untaken == [4, 5], "without any trial it would fail"


def test_a_convolution_may_take_an_algorithm_that_needs_nothing() -> None:
    scratch, untaken = spared(convolution("conv", 0, 0, 0, 8 * MIB), [0])
    assert scratch == [1, 3, 4] and untaken == [1, 4]


def test_what_a_recurrent_layer_needs_is_no_scratch_memory() -> None:
    recurrent = Made(18 * MIB, "model/lstm/CudnnRNNV3", TEMP)
    assert spared([recurrent, recurrent], [0]) == ([], [])


def test_xla_tries_kernels_with_inputs_that_it_needs() -> None:
    inputs = [Made(REDZONES + 1, until=6), Made(REDZONES + 2, until=5)]
    first = Made(3 * MIB)
    trials = [Made(3 * MIB + 256), Made(9 * MIB), Made(3 * MIB + 512)]
    reference = Made(3 * MIB + 1024, until=3)
    compiled, buffer, step = [*inputs, first, reference, *trials], Made(4 * MIB), Made(256, "Mul", OUTPUT)
    scratch, untaken = spared([step, *compiled, buffer, step, buffer, step, buffer], [0, 9, 11])
    assert scratch == [3, 4, 5, 6, 7] and not untaken, "without room for one, programs failed later"


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


def test_a_trace_goes_on_with_a_later_window_in_which_more_was_in_use() -> None:
    def life(address: int, requested: int, begin: int, end: int = FOREVER) -> Life:
        return Life(Alike(f"made_{requested}", "", 1, OUTPUT, requested, requested, 1), address, begin, end)

    tracer = Tracer(1, "CPU:0")
    kept, freed_later, of_step = life(0, 100, 0), life(100, 20, 1), life(200, 7, 2, 3)
    first = PoolCourse(0, [kept, freed_later, of_step], at_ns=[0, 1, 2, 3], in_use=[100, 120, 127, 120])
    # Until the next window one allocation was freed, and another made.
    there = [life(0, 100, -1), life(300, 50, -1, 1)]
    then = PoolCourse(150, [*there, life(400, 1000, 0)], at_ns=[10, 11], in_use=[1150, 1100])
    parts = [*tracer.trace(first, [0], [], whole=True, t=1.0), *tracer.trace(then, [0], [], whole=True, t=2.0)]
    found = course_of(parts)
    assert [part.last for part in parts] == [True, True] and tracer.highest == 1150
    in_use, sizes = 0, [value for who, value in found.events if not who & 1]
    for who, value in found.events:
        in_use += -sizes[value] if who & 1 else value
    assert sizes == [100, 20, 7, 50, 1000] and in_use == 1100
    assert found.requested == 1150 and found.steps == [0, 6] and found.kept == 150
    assert found.operation_of(6) == "made_1000"


def test_what_a_later_window_saw_freed_may_be_scratch_memory_whatever_its_operation() -> None:
    tracer, alike = Tracer(1, "GPU:0"), Alike("MatMul", "", 1, OUTPUT, MIB, MIB, 1)
    first = PoolCourse(0, [Life(alike, 0, 0)], at_ns=[0], in_use=[MIB])
    made = Life(alike, 2 * MIB, 0)
    then = PoolCourse(2 * MIB, [Life(alike, MIB, -1, 1), made], at_ns=[1, 2], in_use=[3 * MIB, 2 * MIB])
    parts = [part for course in (first, then) for part in tracer.trace(course, [], [], whole=True, t=0.0)]
    found = course_of(parts)
    assert (found.scratch, found.untaken) == ([1], [])
