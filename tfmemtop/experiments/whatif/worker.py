"""Builds the replay program if there is none, and replays one trace: ``python -m tfmemtop.experiments.whatif.worker``.

This runs in a separate process, so that it does not disturb the script. The answer is the
event :class:`~tfmemtop.events.replayed.Replayed`; ``worker_protocol.py`` describes input and output.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tfmemtop.events import Outcome, Replayed, SettingReplayed, SmallestLimits, Trace, Unbuilt, Unreplayed, encode
from tfmemtop.experiments.whatif.course import Course, course_of
from tfmemtop.experiments.whatif.settings import Asked, Present, at_least, first, further, growths
from tfmemtop.experiments.whatif.waiting import runs_of
from tfmemtop.experiments.whatif.worker_protocol import serve
from tfmemtop.probe.build import REPLAY, build
from tfmemtop.probe.replaying import Ends, NotReplayed, Question, ReplayAnswer, Replayer, ReplayOutcome


def replayed(course: Course, program: Path, present: Present, t: float = 0.0) -> Replayed:
    """Replay *course* with *program*. Return the result as an event at *t* seconds of the session."""
    began = time.monotonic()
    try:
        with Replayer(program, course.events, course.steps, course.scratch, runs_of(course)) as replayer:
            free, *found = replayer.ask(first(course.device, present))
            ends = [answer if isinstance(answer, Ends) else None for answer in found]
            pool = free.in_order.peak_pool if isinstance(free, ReplayAnswer) else None
            more = [present.question, *further(course.device, present, ends, pool)]
            answers = [*replayer.ask(more), free]
            rows = _rows(course, [*more, Question(True, present.collects)], answers)
    except NotReplayed as error:
        return told(course, t, unreplayed=Unreplayed(error.why), detail=error.detail, count=error.count)
    return told(
        course,
        t,
        present=rows[0] if answers[0] is not None else None,
        rows=rows[answers[0] is not None :],
        smallest=[
            SmallestLimits(growth, present.collects, found.surely, at_least(found))
            for growth, found in zip(growths(course.device), ends, strict=True)
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
    unreplayed: Unreplayed | None = None,
    detail: str = "",
    count: int | None = None,
    unbuilt: Unbuilt | None = None,
) -> Replayed:
    """Return the event for *course*. Without rows, *unreplayed* and the three arguments after it contain why."""
    return Replayed(
        t=t,
        pid=course.pid,
        device=course.device,
        events=len(course.events),
        allocations=course.allocations,
        steps=len(course.steps),
        lost=course.lost,
        whole=course.whole,
        scratch=len(course.scratch),
        requested=course.requested,
        kept=course.kept,
        before=course.before,
        present=present,
        rows=list(rows),
        smallest=list(smallest),
        took_s=took_s,
        unreplayed=unreplayed,
        detail=detail,
        count=count,
        unbuilt=unbuilt,
    )


def _rows(
    course: Course, questions: Sequence[Question], answers: Sequence[ReplayAnswer | Ends | None]
) -> list[SettingReplayed]:
    """Return a row for each answer. There is no answer for a pool whose data in BFC would take too much memory."""
    return [
        SettingReplayed(
            growth=question.growth,
            collects=question.collects,
            limit=question.limit,
            in_order=_outcome(course, answer.in_order),
            waiting=None if answer.in_order.fits else _outcome(course, answer.waiting),
        )
        for question, answer in zip(questions, answers, strict=True)
        if isinstance(answer, ReplayAnswer)
    ]


def _outcome(course: Course, found: ReplayOutcome) -> Outcome:
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


def answer(asked: Asked, parts: Sequence[Trace]) -> Replayed:
    """Return the table for the trace in *parts*; an event without rows if the trace cannot be replayed.

    Raises:
        ValueError: *parts* are not all parts of one trace, or one of them is damaged.
    """
    course = course_of(parts)
    built = build(Path(asked.tensorflow), asked.version, REPLAY)
    if built.state != "built":
        unbuilt = msgspec.convert(built.unbuilt, Unbuilt)
        return told(course, asked.t, unreplayed=Unreplayed.UNBUILT, unbuilt=unbuilt)
    return replayed(course, Path(built.path), asked.present, asked.t)


def main(_: list[str]) -> int:
    """Answer the question on stdin. Return the exit status: 0, or 1 if the question cannot be decoded."""
    return serve(Asked, lambda asked, parts: encode(answer(asked, parts)))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
