"""The table of settings for one trace: the replay program is asked twice, then for limits around the smallest."""

import time
from collections.abc import Sequence
from pathlib import Path

from tfmemtop.events import Outcome, Replayed, SettingReplayed, SmallestLimits
from tfmemtop.probe.replaying import Answer, Ends, NotReplayed, Question, run
from tfmemtop.probe.replaying import Outcome as Found
from tfmemtop.whatif.course import Course
from tfmemtop.whatif.settings import Present, first, further, kinds


def replayed(course: Course, program: Path, present: Present, t: float = 0.0) -> Replayed:
    """What *program* says of *course*, as an event at *t* seconds of the session."""
    began = time.monotonic()
    asked = first(course.device, present)
    try:
        answers = run(program, course.events, course.steps, asked)
        ends = [answer if isinstance(answer, Ends) else None for answer in answers[2:]]
        free = answers[1]
        pool = free.in_order.peak_pool if isinstance(free, Answer) else None
        more = further(course.device, present, ends, pool)
        rows = _rows(course, [asked[1], *more], [free, *run(program, course.events, course.steps, more)])
    except NotReplayed as error:
        return told(course, t, missing=str(error))
    return told(
        course,
        t,
        present=next(iter(_rows(course, asked[:1], answers[:1])), None),
        rows=rows,
        smallest=[
            SmallestLimits(growth, collects, found.surely, found.at_least)
            for (growth, collects), found in zip(kinds(course.device, present), ends, strict=True)
            if found is not None
        ],
        took_s=time.monotonic() - began,
    )


def told(
    course: Course,
    t: float,
    *,
    present: SettingReplayed | None = None,
    rows: Sequence[SettingReplayed] = (),
    smallest: Sequence[SmallestLimits] = (),
    took_s: float = 0.0,
    missing: str | None = None,
    remedy: str = "",
) -> Replayed:
    """The event for *course*; without rows *missing* says why."""
    return Replayed(
        t=t,
        pid=course.pid,
        device=course.device,
        events=len(course.events),
        allocations=course.allocations,
        steps=len(course.steps),
        lost=course.lost,
        whole=course.whole,
        requested=course.requested,
        present=present,
        rows=list(rows),
        smallest=list(smallest),
        took_s=took_s,
        missing=missing,
        remedy=remedy,
    )


def _rows(
    course: Course, questions: Sequence[Question], answers: Sequence[Answer | Ends | None]
) -> list[SettingReplayed]:
    """A row for each answer that there is; none for a pool whose books would take too much memory."""
    return [
        SettingReplayed(
            growth=question.growth,
            collects=question.collects,
            limit=question.limit,
            in_order=_outcome(course, answer.in_order),
            waiting=None if answer.in_order.fits else _outcome(course, answer.waiting),
        )
        for question, answer in zip(questions, answers, strict=True)
        if isinstance(answer, Answer)
    ]


def _outcome(course: Course, found: Found) -> Outcome:
    return Outcome(
        fits=found.fits,
        in_use=found.in_use,
        peak=found.peak,
        pool=found.pool,
        peak_pool=found.peak_pool,
        growths=found.growths,
        largest_free=found.largest_free,
        allocations=found.allocations,
        waits=found.waits,
        failed=None if found.fits else found.failed,
        operation="" if found.fits else course.operation_of(found.failed),
        asked=found.asked,
        lacking=found.lacking,
    )
