"""Makes the trace of a pool, for replays: its recorded allocations in their order, as events of bounded size."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tfmemtop.engine.sources.pool_replay import Life, PoolCourse
from tfmemtop.engine.sources.window_file import CallStart
from tfmemtop.events import Trace
from tfmemtop.events.allocations import FOREVER, MOST_OF_PART, Call, TraceAllocations, pack
from tfmemtop.events.holders import MOST_PACKED, MOST_PARTS
from tfmemtop.events.machine import is_gpu

_NO_REGION, _TEMP, _UINT8 = 0, 2, 4  # two numbers of RegionOf() in window.h, and TensorFlow's number of a type
_REDZONES, _ROUNDED = 16 << 20, 4
"""Bytes that TensorFlow adds to the scratch memory of an algorithm that it tries (redzone_allocator.h), and to whose
multiple it rounds."""
_RECURRENT = "CudnnRNN"  # such an operation waits for its scratch memory, and fails without


class Scratch:
    """Finds the scratch memory among the lives of one course. *steps* are its events at which a step began.

    What a *later* window found in use, and saw freed, may be scratch memory whose request was not recorded.
    """

    def __init__(self, course: PoolCourse, steps: Sequence[int], *, later: bool) -> None:
        self._steps = steps
        self._later = later
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
        """Return whether TensorFlow can do without the allocation *life*, or perhaps can."""
        alike = life.alike
        if self._later and life.begin < 0 and life.end != FOREVER:
            return True
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
        tried = alike.operation in self._taken and not _is_temporary(life)
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


class Tracer:
    """The trace of one pool: all allocations of its start window, then those of later windows in which more was in use.

    Between two windows, what was freed is freed and what was allocated is allocated in one go, as the chunks show. An
    allocation of the same bytes at the same address is taken to be the same: a steady training does not change these.
    """

    def __init__(self, pid: int, device: str) -> None:
        self._pid, self._device = pid, device
        self._names = {"": -1}
        self._threads = {(0, 0): _BEFORE}  # by window and the file's number
        self._alive: dict[tuple[int, int], int] = {}  # by address and requested bytes: the allocation's number
        self._windows = self._events = self._made = self._calls = self._parts = 0
        self.highest = 0
        """The most bytes in use in the windows of the trace."""

    def trace(
        self, course: PoolCourse, steps: list[int], calls: list[CallStart], *, whole: bool, t: float
    ) -> list[Trace]:
        """Return the parts of the trace that *course*, a window's, adds; empty if they are too many.

        *steps* are its events at which a step began. *calls* are all calls of functions and sessions in the process. If
        a run is called again from within, its first call counts. *t* is the time of the parts. The free of something
        unknown is left out. An allocation that must have been freed, although no free was recorded, is freed where
        something else was allocated in its place.
        """
        self._windows += 1
        self.highest = max(self.highest, course.before, *course.in_use)
        started = {call.run: call for call in reversed(calls)}
        calls = sorted(started.values())
        runs = {call.run: number for number, call in enumerate(calls, self._calls)}
        self._calls += len(calls)
        events, made, places = self._in_order(course)
        places = [self._events + place for place in (*places, len(events))]
        begins = [places[step] for step in steps]
        begun = [Call(self._thread(call.thread), places[bisect_left(course.at_ns, call.at_ns)]) for call in calls]
        scratch = Scratch(course, steps, later=self._windows > 1) if is_gpu(self._device) else None
        parts: list[Trace] = []
        at = first = 0  # the places of the part's first event and its first allocation
        while at < len(events) or not parts:
            count = MOST_OF_PART
            while True:
                end = min(at + count, len(events))
                last = end == len(events)
                lives = made[first : first + sum(not who & 1 for who, _ in events[at:end])]
                new = list(
                    dict.fromkeys(one.alike.operation for one in lives if one.alike.operation not in self._names)
                )
                known = self._names | {name: number for number, name in enumerate(new, len(self._names) - 1)}
                numbered = enumerate(lives, self._made + first)
                spared = [(number, life) for number, life in numbered if scratch and scratch.has(life)]

                def within(event: int, begin: int = at, end: int = end, last: bool = last) -> bool:
                    return begin <= event - self._events < end or (last and event - self._events == end)

                content = TraceAllocations(
                    names=new,
                    events=events[at:end],
                    operations=[known[life.alike.operation] for life in lives],
                    runs=[runs.get(life.run, -1) if life.begin >= 0 else -1 for life in lives],
                    scratch=[number for number, life in spared],
                    untaken=[number for number, life in spared if scratch and scratch.is_untaken(life)],
                    calls=[call for call in begun if within(call.event)],
                )
                packed = pack(content)
                if len(packed) <= MOST_PACKED:
                    break
                count //= 2
            part = self._parts + len(parts)
            parts.append(
                Trace(
                    t=t,
                    pid=self._pid,
                    device=self._device,
                    part=part,
                    last=last,
                    whole=whole,
                    events=end - at,
                    lost=course.lost() if last else 0,
                    before=sum(life.begin < 0 for life in course.lives) if part == 0 else 0,
                    steps=[begin for begin in begins if within(begin)][:_STEPS],
                    packed=packed,
                )
            )
            at, first, self._names = end, first + len(lives), known
        self._events += len(events)
        self._made += len(made)
        self._parts += len(parts)
        return parts if self._parts <= MOST_PARTS else []

    def _thread(self, number: int) -> int:
        """Return the trace's number of the thread that has this *number* in the newest window's file."""
        return self._threads.setdefault((self._windows, number), len(self._threads))

    def _in_order(self, course: PoolCourse) -> tuple[list[tuple[int, int]], list[Life], list[int]]:
        """Return the events that *course* adds, its new allocations, and for each of its events the place in these."""
        ended: dict[int, list[Life]] = defaultdict(list)
        for life in course.lives:
            if life.end != FOREVER:
                ended[life.end].append(life)
        there = sorted((life for life in course.lives if life.begin < 0), key=lambda life: life.address)
        numbers = {id(one): self._alive.pop(_place(one)) for one in there if _place(one) in self._alive}
        events = [(_BEFORE << 1 | 1, gone) for gone in self._alive.values()]
        made: list[Life] = []

        def begin(life: Life, thread: int) -> None:
            numbers[id(life)] = self._made + len(made)
            made.append(life)
            events.append((thread << 1, life.alike.requested))

        for life in there:
            if id(life) not in numbers:
                begin(life, _BEFORE)
        begun = iter(course.lives[len(there) :])
        following = next(begun, None)
        places = []
        for event in range(len(course.at_ns)):
            places.append(len(events))
            for life in ended.pop(event, ()):
                freed_by = self._thread(life.thread if life.freed_by is None else life.freed_by)
                events.append((freed_by << 1 | 1, numbers[id(life)]))
            if following is not None and following.begin == event:
                begin(following, self._thread(following.thread))
                following = next(begun, None)
        self._alive = {_place(life): numbers[id(life)] for life in course.lives if life.end == FOREVER}
        return events, made, places


def _place(life: Life) -> tuple[int, int]:
    return life.address, life.alike.requested
