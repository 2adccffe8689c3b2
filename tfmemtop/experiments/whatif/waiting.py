"""Finds which events of a trace wait for which: a thread that calls a function goes on when its run has ended. Pure."""

from bisect import bisect_left
from collections import defaultdict

from tfmemtop.experiments.whatif.course import Course
from tfmemtop.probe.replaying import Follows, Runs


def runs_of(course: Course) -> Runs:
    """Return the runs of *course*, and what comes before and after each of them in the thread that calls it.

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
