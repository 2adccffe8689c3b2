"""Finds which events of a trace wait for which: a thread that calls a function goes on when its run has ended. Pure."""

from bisect import bisect_left
from collections import defaultdict

from tfmemtop.probe.replaying import Follows, Runs
from tfmemtop.whatif.course import Course


def runs_of(course: Course) -> Runs:
    """Return the runs of *course*, and what comes before and after each of them in the thread that calls it.

    If a thread makes an event of its own during a run that it has called, the thread does not wait for its calls. Then
    none of them counts.
    """
    last: dict[int, int] = {}  # by run: the event that is its last allocation
    mine: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by thread: its events, each with its run
    allocation = 0
    for event, (who, _) in enumerate(course.events):
        run = -1
        if not who & 1:
            run = course.runs[allocation]
            allocation += 1
            if run >= 0:
                last[run] = event
        mine[who >> 1].append((event, run))
    by_thread: dict[int, list[int]] = defaultdict(list)
    for run, call in enumerate(course.calls):
        if run in last:
            by_thread[call.thread].append(run)
    found: list[Follows] = []
    for thread, runs in by_thread.items():
        found += _of_thread(course, runs, last, mine[thread])
    return Runs(course.runs, found) if found else Runs()


def _of_thread(course: Course, runs: list[int], last: dict[int, int], mine: list[tuple[int, int]]) -> list[Follows]:
    """Return the order of one thread's *runs* and of its own events *mine*; empty if the thread does not wait."""
    found = []
    before = -1
    for run in runs:
        begin = bisect_left(mine, (course.calls[run].event, -2))
        end = bisect_left(mine, (last[run], -2))
        if any(its != run for _, its in mine[begin:end]):
            return []
        after = next((event for event, its in mine[end:] if its != run), -1)
        found.append(Follows(run, mine[begin - 1][0] if begin else -1, before, after))
        before = run
    return found
