"""A trace in the form that the replay takes, and which of its events wait for which. Pure."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from tfmemtop.events import Trace
from tfmemtop.events.allocations import Call, TraceAllocations, unpack
from tfmemtop.events.damage import Damage, Damaged
from tfmemtop.experiments.whatif.replayer import Follows, Runs


class Course(msgspec.Struct, frozen=True):
    """All events of a trace, and facts about it.

    Each of ``events`` is a pair. For an allocation: the thread times two, and the requested bytes. For a free: the
    thread times two plus one, and the number of the allocation that is freed. ``steps`` are the numbers of the events
    at which a step began. ``operations`` contains for each allocation the place of its name in ``names``, or -1 if it
    has none. ``scratch`` are the numbers of allocations that TensorFlow can do without; ``untaken`` those of
    them that were to try kernels that were not taken. ``calls`` are calls of
    functions and sessions; ``runs`` contains for each allocation the number of the call in whose run it is made, or -1.

    These are sums of requested bytes: ``requested`` is the most that was in use at once; ``kept`` is what was in use
    when the last step began, ``None`` without steps; ``before`` is what was already in use when the trace began.
    """

    pid: int
    device: str
    events: Sequence[tuple[int, int]]
    steps: Sequence[int]
    names: Sequence[str]
    operations: Sequence[int]
    scratch: Sequence[int]
    requested: int
    kept: int | None
    lost: int
    whole: bool
    before: int = 0
    calls: Sequence[Call] = ()
    runs: Sequence[int] = ()
    untaken: Sequence[int] = ()

    @property
    def allocations(self) -> int:
        """The number of events that are allocations."""
        return len(self.operations)

    def operation_of(self, event: int) -> str:
        """Return the operation of the allocation at *event*, or of the one that it frees; empty if it has no name."""
        who, value = self.events[event]
        number = value if who & 1 else sum(not who & 1 for who, _ in self.events[:event])
        place = self.operations[number]
        return self.names[place] if 0 <= place < len(self.names) else ""


def is_complete(parts: Sequence[Trace]) -> bool:
    """Return whether *parts* are all parts of one trace, in order."""
    return bool(parts) and parts[-1].last and [part.part for part in parts] == list(range(len(parts)))


def course_of(parts: Sequence[Trace]) -> Course:
    """Return the trace whose *parts* these are.

    Raises:
        Damaged: *parts* are not all parts of one trace, or one of them is damaged.
    """
    if not is_complete(parts):
        raise Damaged(Damage.INCOMPLETE)
    events: list[tuple[int, int]] = []
    operations: list[int] = []
    names: list[str] = []
    scratch: list[int] = []
    untaken: list[int] = []
    threads: dict[int, int] = {}
    sizes: list[int] = []
    calls: list[Call] = []
    runs: list[int] = []
    in_use = most = 0
    steps = {step for part in parts for step in part.steps}
    kept: int | None = None

    def thread_of(number: int) -> int:
        return threads.setdefault(number, len(threads))

    for part in parts:
        found = unpack(part.packed, TraceAllocations)
        names += found.names
        scratch += found.scratch
        untaken += found.untaken
        operations += found.operations
        runs += found.runs
        calls += (Call(thread_of(call.thread), call.event) for call in found.calls)
        for who, value in found.events:
            if len(events) in steps:
                kept = in_use
            events.append((thread_of(who >> 1) << 1 | who & 1, value))
            if not who & 1:
                sizes.append(value)
                in_use += value
                most = max(most, in_use)
            elif value < len(sizes):
                in_use -= sizes[value]
            else:
                raise Damaged(Damage.INCOMPLETE)
    if not len(operations) == len(runs) == len(sizes):
        raise Damaged(Damage.INCOMPLETE)
    if max(runs, default=-1) >= len(calls) or any(call.event > len(events) for call in calls):
        raise Damaged(Damage.INCOMPLETE)
    return Course(
        pid=parts[0].pid,
        device=parts[0].device,
        events=events,
        steps=sorted(step for step in steps if step < len(events)),
        names=names,
        operations=operations,
        scratch=[number for number in scratch if number < len(operations)],
        requested=most,
        kept=kept,
        lost=sum(part.lost for part in parts),
        whole=all(part.whole for part in parts),
        before=sum(sizes[: parts[0].before]),
        calls=calls,
        runs=runs,
        untaken=[number for number in untaken if number < len(operations)],
    )


def runs_of(course: Course) -> Runs:
    """Return the runs of *course*, and what comes before and after each of them in the thread that calls it.

    A thread that calls a function goes on when its run has ended.
    If a thread makes an event of its own during a run that it has called, the thread does not wait for its calls. Then
    none of them counts. The recorded order of events agrees with all that is returned.
    """
    first: dict[int, int] = {}  # by run: the event that is its first allocation
    last: dict[int, int] = {}
    mine: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by thread: its events, each with its run
    allocation = 0
    for event, (who, _) in enumerate(course.events):
        run = -1
        if not who & 1:
            run = course.runs[allocation]
            allocation += 1
            if run >= 0:
                first.setdefault(run, event)
                last[run] = event
        mine[who >> 1].append((event, run))
    by_thread: dict[int, list[int]] = defaultdict(list)
    for run, call in enumerate(course.calls):
        if run in last:
            by_thread[call.thread].append(run)
    found: list[Follows] = []
    for thread, runs in by_thread.items():
        found += _of_thread(course, runs, first, last, mine[thread])
    return Runs(course.runs, found) if found else Runs()


def _of_thread(
    course: Course, runs: list[int], first: dict[int, int], last: dict[int, int], mine: list[tuple[int, int]]
) -> list[Follows]:
    """Return the order of one thread's *runs* and of its own events *mine*.

    Empty if the thread does not wait, or if its runs are not one after the other: a function may call another one.
    """
    found = []
    before = -1
    for run in runs:
        called = course.calls[run].event
        if first[run] < called or (before >= 0 and last[before] > first[run]):
            return []
        at = bisect_left(mine, (called, -2))
        event = mine[at - 1][0] if at else -1
        while at < len(mine) and mine[at][1] == run:
            at += 1
        after = mine[at][0] if at < len(mine) else -1
        if -1 < after < last[run]:
            return []
        found.append(Follows(run, event, before, after))
        before = run
    return found
