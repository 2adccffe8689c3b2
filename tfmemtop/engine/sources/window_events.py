"""Makes events from a window file: the holders of each pool and, for replays, the allocations in their order.

An allocation that outlives its window keeps its name in the next one: :class:`Known` stores the names.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

from tfmemtop.engine.sources.holders_event import WindowPart, holders_of
from tfmemtop.engine.sources.pool_replay import Alike, Life, PoolCourse, after_chunks, before_records, replay
from tfmemtop.engine.sources.trace_events import Tracer
from tfmemtop.engine.sources.window_file import AT_NS, POOL, ChunkInUse, PythonRun, Record, WindowFile
from tfmemtop.events import Damage, Holders, Opened, ScriptPhase, Trace, Window
from tfmemtop.events.allocations import FOREVER, MOST_EVENTS
from tfmemtop.events.damage import Damaged
from tfmemtop.events.replayed import HIGHER_LATER

KNOWN = 65_536
"""The most allocations of one pool whose names are kept from one window to the next. The largest are kept."""

_HIGHER = 1.02
"""A peak is described beside the last step if it is higher by this factor."""

_PHASES = 8
"""The most phases of which the fullest moment is described: those with the highest peaks."""

_BESIDE = 1000
"""The most events before that moment, and after it, that are described if it is in no whole step."""

WHOLE_STEPS = 3
"""A trace with fewer steps is not whole."""


class Known:
    """The names of the allocations that were alive in each pool of a process as its newest window ended.

    A chunk that has the same address, size and requested size when the next window begins is taken to be the same
    allocation. It may be another one: the first was freed between the windows, and the same size was allocated at the
    same place, by the same operation in another step or, rarely, by another operation. TensorFlow's figures do not show
    the difference. So a name is certain for what is never freed, such as variables and slots. For the rest it is only
    likely.
    """

    def __init__(self) -> None:
        self._pools: dict[str, dict[int, Alike]] = {}
        self.tracers: dict[str, Tracer] = {}
        """By device: the trace, to which a window may add."""

    def name(self, device: str, chunk: ChunkInUse) -> Alike:
        """Return what is known of *chunk*. Its operation is empty if nothing but its sizes is known."""
        known = self._pools.get(device, {}).get(chunk.address)
        if known is not None and (known.size, known.requested) == (chunk.size, chunk.requested):
            return known
        return Alike("", "", 0, 0, chunk.requested, chunk.size, 0)

    def remember(self, device: str, course: PoolCourse) -> None:
        """Store what is alive at the end of a window."""
        alive = [life for life in course.lives if life.end == FOREVER and life.alike.window]
        if len(alive) > KNOWN:
            alive.sort(key=lambda life: -life.alike.size)
        self._pools[device] = {life.address: life.alike for life in alive[:KNOWN]}


def events_of(
    window: Window,
    file: WindowFile,
    known: Known,
    since_start: Callable[[float], float],
    *,
    t: float,
    phases: Iterable[ScriptPhase] = (),
) -> Iterator[Holders | Trace]:
    """Yield the events of each pool, one pool after the other.

    *since_start* converts seconds of the machine's monotonic clock to session seconds. *t* is the time of the events.
    *phases* are those of the process that have ended, at most one of each name.

    Raises:
        Damaged: *file* has more pools than *window* names.
    """
    if len(window.pools) < len(file.pools):
        raise Damaged(Damage.INCOMPLETE)

    def clock(at_ns: int) -> float:
        return since_start(file.monotonic(at_ns))

    records = _by_pool(file.records)
    chunks: dict[int, list[ChunkInUse]] = defaultdict(list)
    for chunk in file.chunks:
        chunks[chunk.pool].append(chunk)
    for number, pool in enumerate(file.pools):
        device = window.pools[number]
        mine = records.pop(number, [])
        if not mine and not pool.in_use:
            continue
        there = [Life(known.name(device, chunk), chunk.address, -1) for chunk in chunks.pop(number, [])]
        later = after_chunks(mine, there, pool.in_use, pool.at_ns)
        before, there = before_records(mine[: len(mine) - len(later)], there, pool.in_use)
        course = replay(before, there, mine, _Namer(file, window.window))
        known.remember(device, course)
        parts = [*_parts(window, file, course)]
        for part in parts:
            yield holders_of(window, device, course, part, clock=clock, t=t)
        if window.opened is Opened.START and (window.last or window.reading is Opened.ASKED):
            for name, part in _of_phases(file, course, _highest(phases, device), parts, clock):
                yield holders_of(window, device, course, part, clock=clock, t=t, phase=name)
            known.tracers[device] = Tracer(window.pid, device)
        elif not _adds(window, course, known.tracers.get(device)):
            continue
        begins = [bisect_left(course.at_ns, begin) for begin, _ in file.steps]
        whole = window.opened is not Opened.START or len(file.steps) >= WHOLE_STEPS
        yield from known.tracers[device].trace(course, begins, file.calls, whole=whole, t=t)


def _adds(window: Window, course: PoolCourse, tracer: Tracer | None) -> bool:
    """Return whether the trace goes on with *course*, a later window's that has ended: with each only once."""
    complete = window.last and window.opened is not Opened.START
    return complete and tracer is not None and max(course.in_use, default=0) > HIGHER_LATER * tracer.highest


def _by_pool(records: list[Record]) -> dict[int, list[Record]]:
    """Return the records of each pool, sorted by time."""
    found: dict[int, list[Record]] = defaultdict(list)
    latest = 0
    in_order = True
    for record in records:
        found[record[POOL]].append(record)
        in_order &= record[AT_NS] >= latest
        latest = record[AT_NS]
    if not in_order:  # sorting holds Python's lock for a while, so it is done only if needed
        for each in found.values():
            each.sort(key=itemgetter(AT_NS))
    return found


class _Namer:
    """Returns what an allocation has in common with others. All that are alike get the same object."""

    def __init__(self, file: WindowFile, window: int) -> None:
        self._strings = file.strings
        self._window = window
        self._found: dict[tuple[int, ...], Alike] = {}
        self._python: dict[int, list[PythonRun]] = defaultdict(list)
        for run in sorted(file.python):
            self._python[run.thread].append(run)

    def __call__(self, record: Record) -> Alike:
        at_ns, _, requested, size, _, thread, operation, shape, _, region, dtype, _ = record
        if not operation and thread in self._python:
            runs = self._python[thread]
            run = runs[bisect_left(runs, (at_ns,)) - 1]  # before the first one, it is the last
            operation = run.operation if run.begin_ns <= at_ns <= run.end_ns else 0
        key = operation, shape, dtype, region, requested, size
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = Alike(
                self._strings[operation], self._strings[shape], dtype, region, requested, size, self._window
            )
        return found


def _parts(window: Window, file: WindowFile, course: PoolCourse) -> Iterator[WindowPart]:
    """Yield the parts of *course* that are described: the last whole step if there is one, else all.

    A window may open in the middle of a step. What that step allocated before has no name, and may still be there in
    the step after it. The window of the start has no such step, and in one that a risen peak has opened it is that peak
    that matters. If their peak is elsewhere than in the last step, the part around it comes first.
    """
    opened = window.reading or window.opened
    if opened is Opened.WAITING or not file.steps:
        yield _part(file, course, 0, len(course.at_ns), None, opened)
        return
    borders = [(bisect_left(course.at_ns, begin), bisect_left(course.at_ns, end)) for begin, end in file.steps]
    first, last = borders[-1]
    last = max(first, last)
    highest = max(course.in_use, default=0)
    if window.opened in (Opened.START, Opened.PEAK) and highest > _HIGHER * max(course.in_use[first:last], default=0):
        peak = course.in_use.index(highest)
        within = next((place for place, (begin, end) in enumerate(borders) if begin <= peak < end), None)
        if within is not None:
            yield _part(file, course, *borders[within], within, window.opened)
        else:
            begin = max((end for _, end in borders if end <= peak), default=0)
            end = min((begin for begin, _ in borders if begin > peak), default=len(course.at_ns))
            begin = max(begin, peak - MOST_EVENTS // 2)
            yield _part(file, course, begin, min(end, begin + MOST_EVENTS), None, window.opened)
    yield _part(file, course, first, last, len(borders) - 1, opened)


def _highest(phases: Iterable[ScriptPhase], device: str) -> list[ScriptPhase]:
    found = [phase for phase in phases if device in phase.peaks]
    return sorted(found, key=lambda phase: -phase.peaks[device])[:_PHASES]


def _of_phases(
    file: WindowFile,
    course: PoolCourse,
    phases: Iterable[ScriptPhase],
    told: Sequence[WindowPart],
    clock: Callable[[int], float],
) -> Iterator[tuple[str, WindowPart]]:
    """Yield the name of each of *phases*, and the part of *course* around its fullest moment, unless it is *told*."""
    for phase in phases:
        begin = bisect_left(course.at_ns, phase.began, key=clock)
        end = bisect_left(course.at_ns, phase.ended or 0.0, key=clock)
        peak = max(range(begin, end), key=course.in_use.__getitem__, default=-1)
        if peak < 0 or any(part.first <= peak < part.last for part in told):
            continue
        for place, step in enumerate(file.steps):
            first, last = (bisect_left(course.at_ns, at_ns) for at_ns in step)
            if first <= peak < last:
                yield phase.name, _part(file, course, first, last, place, Opened.START)
                break
        else:
            first, last = max(begin, peak - _BESIDE), min(end, peak + _BESIDE)
            yield phase.name, _part(file, course, first, last, None, Opened.START)


def _part(file: WindowFile, course: PoolCourse, first: int, last: int, step: int | None, opened: Opened) -> WindowPart:
    """Return the part from event *first* to before *last*: the whole *step*, if it is one.

    If it has more than ``MOST_EVENTS`` events, it is cut to the last of them, and is no whole step.
    """
    if last - first > MOST_EVENTS:
        first, step = last - MOST_EVENTS, None
    began = course.at_ns[first] if first < len(course.at_ns) else file.realtime_ns
    if step is not None and first:
        began = min(began, file.steps[step][0])
    elif not first:
        began = min(began, file.realtime_ns)
    return WindowPart(first, last, int(step is not None), began, opened)
