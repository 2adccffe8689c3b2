"""Makes the trace of a pool: all allocations of its start window, in their order, as events of bounded size."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tfmemtop.engine.sources.pool_replay import Life, PoolCourse
from tfmemtop.engine.sources.window_file import CallStart
from tfmemtop.events import Trace
from tfmemtop.events.allocations import FOREVER, MOST_OF_PART, Call, TraceAllocations, pack
from tfmemtop.events.holders import MOST_PACKED
from tfmemtop.events.machine import is_gpu

_NO_REGION, _TEMP, _UINT8 = 0, 2, 4  # two numbers of RegionOf() in window.h, and TensorFlow's number of a type
_REDZONES = (
    16 << 20
)  # bytes that TensorFlow adds to the scratch memory of an algorithm that it tries (redzone_allocator.h)
_ROUNDED = 4  # and to whose multiple it rounds
_RECURRENT = "CudnnRNN"  # such an operation waits for its scratch memory, and fails without


class Scratch:
    """Finds the scratch memory among the lives of one course. *steps* are its events at which a step began."""

    def __init__(self, course: PoolCourse, steps: Sequence[int]) -> None:
        self._steps = steps
        self._taken: dict[str, int] = {}  # by convolution: the bytes that its algorithm takes
        self._lightest: dict[str, Life] = {}  # by convolution: an algorithm tried that takes nothing
        self._needed: set[int] = set()  # ids of lives without which no kernel can be tried
        self._nameless: dict[int, set[int]] = defaultdict(set)  # by bytes requested: the steps
        for life in course.lives:
            if not life.alike.operation:
                self._nameless[life.alike.requested].add(self._step(life.begin))
            else:
                self._note(life)
        self._needed.update(map(id, self._lightest.values()))  # if not even these can be tried, their operations fail
        by_thread: dict[int, list[Life]] = defaultdict(list)
        for life in course.lives:
            if not life.alike.operation and life.end != FOREVER:
                by_thread[life.thread].append(life)
        for lives in by_thread.values():
            self._needed.update(id(life) for trials in _apart(lives) for life in self._inputs(trials))

    def has(self, life: Life) -> bool:
        """Return whether TensorFlow can do without the allocation *life*."""
        alike = life.alike
        if id(life) in self._needed:
            return False
        if not alike.operation:
            return self._tries_a_kernel(life)
        # A convolution makes allocations without a region to try its algorithms. Without them TensorFlow tries the
        # algorithms on the output itself, or leaves one out (WrapRedzoneBestEffort and AutotuneUnfusedConv in
        # conv_ops_gpu.cc).
        return alike.operation in self._taken and (alike.region == _NO_REGION or _is_temporary(life))

    def is_untaken(self, life: Life) -> bool:
        """Return whether *life*, which is scratch memory, was to try an algorithm that a convolution did not take.

        A convolution requests what its algorithm takes again, as scratch memory of that size. What XLA tries counts as
        taken: without room for it, two of four programs on an H100 failed later.
        """
        alike = life.alike
        tried = bool(alike.operation) and not _is_temporary(life)
        return tried and alike.requested >= self._taken[alike.operation] + _REDZONES + _ROUNDED

    def _note(self, life: Life) -> None:
        """Note what the operation of *life* takes, if it is a convolution."""
        alike = life.alike
        if alike.operation.rpartition("/")[2].startswith(_RECURRENT):
            return
        if _is_temporary(life):
            # DnnScratchAllocator (conv_ops_gpu.h) requests scratch memory as temporary bytes, and never waits.
            self._taken[alike.operation] = max(alike.requested, self._taken.get(alike.operation, 0))
        elif alike.region == _NO_REGION and alike.requested >= _REDZONES:
            self._taken.setdefault(alike.operation, 0)
            if alike.requested == _REDZONES and alike.operation not in self._lightest:
                self._lightest[alike.operation] = life

    def _tries_a_kernel(self, life: Life) -> bool:
        """Return whether XLA requested *life* while it compiled, to try a kernel.

        XLA leaves out a kernel that gets no memory. What XLA allocates has no operation. The buffers of its clusters
        have the same sizes again in the next step, so an allocation to try a kernel has a size of one step only.
        """
        step = self._step(life.begin)
        within = life.end != FOREVER and 0 <= step == self._step(life.end) < len(self._steps) - 1
        return within and len(self._nameless[life.alike.requested]) == 1

    def _inputs(self, trials: list[Life]) -> Iterator[Life]:
        """Yield the inputs of the kernels that are tried with *trials*: what stands from before the first to the last.

        XLA makes them once for all kernels, and cannot compile without them (ProfileAll in autotuner.cc).
        """
        if any(map(self._tries_a_kernel, trials)):
            freed, last = min(life.end for life in trials), trials[-1].begin
            yield from (life for life in trials[:-1] if life.begin < freed and life.end > last)

    def _step(self, event: int) -> int:
        """Return the number of the step in which *event* lies; -1 before the first step."""
        return bisect_right(self._steps, event) - 1


def _is_temporary(life: Life) -> bool:
    """Return whether *life* is of temporary bytes."""
    return (life.alike.region, life.alike.dtype) == (_TEMP, _UINT8)


def _apart(lives: list[Life]) -> Iterator[list[Life]]:
    """Yield *lives*, which are in the order of their beginnings, in groups between which none of them is in use."""
    group: list[Life] = []
    end = -1
    for life in lives:
        if life.begin > end and group:
            yield group
            group = []
        group.append(life)
        end = max(end, life.end)
    if group:
        yield group


_STEPS = 4096  # of one part
_BEFORE = 0  # the thread's number for allocations that were there before the first event


def trace_of(
    pid: int,
    device: str,
    course: PoolCourse,
    steps: list[int],
    calls: list[CallStart],
    *,
    whole: bool,
    t: float,
) -> Iterator[Trace]:
    """Yield the parts of the trace of *course*. *steps* are its events at which a step began.

    *calls* are all calls of functions and sessions in the process. If a run is called again from within, its first call
    counts. *t* is the time of the parts. The
    free of something unknown is left out. An allocation that must have been freed, although no free was recorded, is
    freed where something else was allocated in its place.
    """
    started = {call.run: call for call in reversed(calls)}
    calls = sorted(started.values())
    runs = {call.run: number for number, call in enumerate(calls)}
    threads: dict[int, int] = {}
    events, made, places = _in_order(course, threads)
    places.append(len(events))
    begins = [places[step] for step in steps]
    begun = [
        Call(threads.setdefault(call.thread, len(threads)), places[bisect_left(course.at_ns, call.at_ns)])
        for call in calls
    ]
    scratch = Scratch(course, steps) if is_gpu(device) else None
    names: dict[str, int] = {"": -1}
    at = first = part = 0  # the places of the part's first event and its first allocation
    while at < len(events) or part == 0:
        count = MOST_OF_PART
        while True:
            end = min(at + count, len(events))
            last = end == len(events)
            lives = made[first : first + sum(not who & 1 for who, _ in events[at:end])]
            new = list(dict.fromkeys(life.alike.operation for life in lives if life.alike.operation not in names))
            known = names | {name: number for number, name in enumerate(new, len(names) - 1)}
            spared = [(number, life) for number, life in enumerate(lives, first) if scratch and scratch.has(life)]
            content = TraceAllocations(
                names=new,
                events=events[at:end],
                operations=[known[life.alike.operation] for life in lives],
                runs=[runs.get(life.run, -1) if life.begin >= 0 else -1 for life in lives],
                scratch=[number for number, life in spared],
                untaken=[number for number, life in spared if scratch and scratch.is_untaken(life)],
                calls=[call for call in begun if at <= call.event < end or (last and call.event == end)],
            )
            packed = pack(content)
            if len(packed) <= MOST_PACKED:
                break
            count //= 2
        yield Trace(
            t=t,
            pid=pid,
            device=device,
            part=part,
            last=last,
            whole=whole,
            events=end - at,
            lost=course.lost() if last else 0,
            before=sum(life.begin < 0 for life in course.lives) if part == 0 else 0,
            steps=[begin for begin in begins if at <= begin < end or (last and begin == end)][:_STEPS],
            packed=packed,
        )
        at, first, part, names = end, first + len(lives), part + 1, known


def _in_order(course: PoolCourse, threads: dict[int, int]) -> tuple[list[tuple[int, int]], list[Life], list[int]]:
    """Return all events of the trace, its allocations, and for each event of the course its place in the trace.

    *threads* maps the file's numbers of threads to those in the trace. Threads that are missing in *threads* are added
    to it.
    """
    ended: dict[int, list[Life]] = defaultdict(list)
    for life in course.lives:
        if life.end != FOREVER:
            ended[life.end].append(life)
    made = sorted((life for life in course.lives if life.begin < 0), key=lambda life: life.address)
    events = [(_BEFORE << 1, life.alike.requested) for life in made]
    if made:
        threads[0] = _BEFORE
    numbers = {id(life): number for number, life in enumerate(made)}
    begun = iter(course.lives[len(made) :])
    following = next(begun, None)
    places = []
    for event in range(len(course.at_ns)):
        places.append(len(events))
        for life in ended.pop(event, ()):
            thread = life.thread if life.freed_by is None else life.freed_by
            events.append((threads.setdefault(thread, len(threads)) << 1 | 1, numbers[id(life)]))
        if following is not None and following.begin == event:
            numbers[id(following)] = len(made)
            made.append(following)
            events.append((threads.setdefault(following.thread, len(threads)) << 1, following.alike.requested))
            following = next(begun, None)
    return events, made, places
