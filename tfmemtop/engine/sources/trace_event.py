"""Makes the events that contain all allocations of a pool in their order, in parts of bounded size."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tfmemtop.engine.sources.pool_replay import Life, PoolCourse
from tfmemtop.engine.sources.window_file import CallStart
from tfmemtop.events import Trace
from tfmemtop.events.courses import (
    FOREVER,
    Allocated,
    Call,
    Freed,
    pack_calls,
    pack_names,
    pack_runs,
    pack_scratch,
    pack_trace,
)
from tfmemtop.events.device_names import is_gpu

_NO_REGION, _TEMP, _UINT8 = 0, 2, 4  # two numbers of RegionOf() in window.h, and TensorFlow's number of a type


class Scratch:
    """Finds the scratch memory among the lives of one course. *steps* are its events at which a step began."""

    def __init__(self, course: PoolCourse, steps: Sequence[int]) -> None:
        self._steps = steps
        # TensorFlow's DnnScratchAllocator (conv_ops_gpu.h) requests scratch memory as temporary bytes, and never waits.
        self._convolutions = {
            life.alike.operation
            for life in course.lives
            if (life.alike.region, life.alike.dtype) == (_TEMP, _UINT8) and life.alike.operation
        }
        self._nameless: dict[int, set[int]] = defaultdict(set)  # by bytes requested: the steps
        for life in course.lives:
            if not life.alike.operation:
                self._nameless[life.alike.requested].add(self._step(life.begin))

    def has(self, life: Life) -> bool:
        """Return whether TensorFlow can do without the allocation *life*."""
        alike = life.alike
        if not alike.operation:
            return self._tries_a_kernel(life)
        if alike.operation not in self._convolutions:
            return False
        # A convolution makes allocations without a region to try its algorithms. Without them TensorFlow tries the
        # algorithms on the output itself, or leaves one out (WrapRedzoneBestEffort and AutotuneUnfusedConv in
        # conv_ops_gpu.cc).
        return alike.region == _NO_REGION or (alike.region, alike.dtype) == (_TEMP, _UINT8)

    def _tries_a_kernel(self, life: Life) -> bool:
        """Return whether XLA requested *life* while it compiled, to try a kernel.

        XLA leaves out a kernel that gets no memory. What XLA allocates has no operation. The buffers of its clusters
        have the same sizes again in the next step, so an allocation to try a kernel has a size of one step only.
        """
        step = self._step(life.begin)
        within = life.end != FOREVER and 0 <= step == self._step(life.end) < len(self._steps) - 1
        return within and len(self._nameless[life.alike.requested]) == 1

    def _step(self, event: int) -> int:
        """Return the number of the step in which *event* lies; -1 before the first step."""
        return bisect_right(self._steps, event) - 1


_EVENTS = 8192  # of one part
_NAMES, _STEPS = 4096, 4096  # of one part
_BYTES = 2**17  # of each packed field
_BEFORE = 0  # the thread's number for allocations that were there before the first event


class _Told(NamedTuple):
    """An event of the trace: an allocation, or, if it has a ``number``, the free of the allocation of that number."""

    thread: int
    requested: int
    operation: str
    number: int | None = None
    scratch: bool = False
    run: int | None = None


def trace_of(
    pid: int,
    device: str,
    course: PoolCourse,
    steps: list[int],
    calls: list[CallStart],
    *,
    lost: int,
    whole: bool,
    breathe: Callable[[], None],
    t: float,
) -> Iterator[Trace]:
    """Yield the parts of the trace of *course*. *steps* are its events at which a step began.

    *calls* are all calls of functions and sessions in the process. If a run is called again from within, its first call
    counts. *lost* is the number of events that are known to be lost, of all pools. *breathe* is called now and then, to
    let other threads run. *t* is the time of the parts. The free of something unknown is left out. An allocation that
    must have been freed, although no free was recorded, is freed where something else was allocated in its place.
    """
    started = {call.run: call for call in reversed(calls)}
    calls = sorted(started.values())
    runs = {call.run: number for number, call in enumerate(calls)}
    threads: dict[int, int] = {}
    told, places = _in_order(course, Scratch(course, steps) if is_gpu(device) else None, runs, threads, breathe)
    made = [_call(call, course, places, len(told), threads) for call in calls]
    known = len(pack_calls(made)) <= _BYTES  # otherwise it has very many threads, and no part tells of calls
    starts = [call.event for call in made]
    begins = [places[step] if step < len(places) else len(told) for step in steps]
    names: dict[str, int] = {}
    at = allocations = part = 0
    while at < len(told) or part == 0:
        count, packed, packed_names, new = _fitting(told, at, allocations, names)
        names.update(new)
        end = at + count
        last = end >= len(told)
        first_step, end_step = bisect_left(begins, at), len(begins) if last else bisect_left(begins, end)
        first_call, end_call = bisect_left(starts, at), len(made) if last else bisect_left(starts, end)
        yield Trace(
            t=t,
            pid=pid,
            device=device,
            part=part,
            last=last,
            whole=whole,
            events=count,
            lost=max(lost, course.lost) if last else 0,
            before=sum(life.begin < 0 for life in course.lives) if part == 0 else 0,
            steps=begins[first_step:end_step][:_STEPS],
            names=packed_names,
            packed=packed,
            scratch=pack_scratch(_scratch(told[at:end], allocations), allocations),
            calls=pack_calls(made[first_call:end_call], at) if known else b"",
            runs=pack_runs(each.run for each in told[at:end] if each.number is None) if known else b"",
        )
        allocations += sum(each.number is None for each in told[at:end])
        at, part = end, part + 1
        breathe()


def _call(call: CallStart, course: PoolCourse, places: list[int], count: int, threads: dict[int, int]) -> Call:
    """Return *call* as it is in a trace of *count* events. *places* and *threads* are those of :func:`_in_order`."""
    event = bisect_left(course.at_ns, call.at_ns)
    return Call(threads.setdefault(call.thread, len(threads)), places[event] if event < len(places) else count)


def _scratch(told: list[_Told], allocations: int) -> list[int]:
    """Return the numbers of the allocations in *told* that are scratch memory.

    The first allocation in *told* has the number *allocations*.
    """
    made = [each for each in told if each.number is None]
    return [number for number, each in enumerate(made, allocations) if each.scratch]


def _fitting(
    told: list[_Told], at: int, allocations: int, names: dict[str, int]
) -> tuple[int, bytes, bytes, dict[str, int]]:
    """Return the next part: the count of its events, the packed events, the packed new names, and the new names.

    The part begins at place *at* of *told*. Its first allocation has the number *allocations*. *names* are those that
    earlier parts contain. New names are those that are in none of them.
    """
    count = min(_EVENTS, len(told) - at)
    while True:
        new: dict[str, int] = {}
        events: list[Allocated | Freed] = []
        for each in told[at : at + count]:
            if each.number is not None:
                events.append(Freed(each.thread, each.number))
                continue
            number = None
            if each.operation:
                number = names.get(each.operation)
                if number is None:
                    number = new.setdefault(each.operation, len(names) + len(new))
            events.append(Allocated(each.thread, each.requested, number))
        if len(new) <= _NAMES:
            packed, packed_names = pack_trace(events, allocations), pack_names([*new])
            if len(packed) <= _BYTES and len(packed_names) <= _BYTES:
                return count, packed, packed_names, new
        count //= 2


def _in_order(
    course: PoolCourse,
    scratch: Scratch | None,
    runs: dict[int, int],
    threads: dict[int, int],
    breathe: Callable[[], None],
) -> tuple[list[_Told], list[int]]:
    """Return all events of the trace, and for each event of the course its place in the trace.

    *runs* maps TensorFlow's numbers of runs to those in the trace. *threads* maps the file's numbers of threads to
    those in the trace. Threads that are missing in *threads* are added to it.
    """
    ended: dict[int, list[Life]] = defaultdict(list)
    for life in course.lives:
        if life.end != FOREVER:
            ended[life.end].append(life)
    breathe()
    numbers: dict[int, int] = {}  # of allocations, by their life's id
    there = sorted((life for life in course.lives if life.begin < 0), key=lambda life: life.address)
    told: list[_Told] = []
    if there:
        threads[0] = _BEFORE
    for life in there:
        numbers[id(life)] = len(numbers)
        told.append(_Told(_BEFORE, life.alike.requested, life.alike.operation))
    begun = iter(course.lives[len(there) :])
    following = next(begun, None)
    places = []
    for event in range(len(course.at_ns)):
        if event % 1024 == 0:
            breathe()
        places.append(len(told))
        for life in ended.pop(event, ()):
            thread = life.thread if life.freed_by is None else life.freed_by
            told.append(_Told(threads.setdefault(thread, len(threads)), 0, "", numbers[id(life)]))
        if following is not None and following.begin == event:
            thread = threads.setdefault(following.thread, len(threads))
            numbers[id(following)] = len(numbers)
            spare = scratch is not None and scratch.has(following)
            run = runs.get(following.run)
            told.append(_Told(thread, following.alike.requested, following.alike.operation, scratch=spare, run=run))
            following = next(begun, None)
    return told, places
