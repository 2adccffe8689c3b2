"""Builds the replay program if there is none, and replays one trace: ``python -m tfmemtop.experiments.whatif.worker``.

This runs in a separate process, so that it does not disturb the script. The answer is the
event :class:`~tfmemtop.events.replayed.Replayed`, as a line on stdout.
"""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tfmemtop import events
from tfmemtop.experiments.whatif.course import Course, course_of, runs_of
from tfmemtop.experiments.whatif.replayer import NotReplayed, Question, Replayer
from tfmemtop.experiments.whatif.settings import Asked, at_least, first, further
from tfmemtop.probe.build import REPLAY, build


def replayed(course: Course, program: Path, present: Question, t: float = 0.0) -> events.Replayed:
    """Replay *course* with *program*. Return the result as an event at *t* seconds of the session."""
    began = time.monotonic()
    try:
        with Replayer(
            program, course.events, course.steps, course.scratch, runs_of(course), course.untaken
        ) as replayer:
            free, *found = replayer.ask(first(course.device, present))
            ends = [answer for answer in found if isinstance(answer, events.SmallestLimits)]
            if len(ends) > 1:  # one region can hold whatever several of its size can
                ends[-1] = replace(ends[-1], at_least=min(end.at_least for end in ends))
            pool = free.in_order.peak_pool if isinstance(free, events.SettingReplayed) else None
            mine, *others = replayer.ask([present, *further(course.device, present, ends, pool)])
    except NotReplayed as error:
        unreplayed = events.Unreplayed(error.why)
        return replace(_unanswered(course, t), unreplayed=unreplayed, detail=error.detail, count=error.count)
    return replace(
        _unanswered(course, t),
        present=_named(course, mine) if isinstance(mine, events.SettingReplayed) else None,
        rows=[_named(course, row) for row in (*others, free) if isinstance(row, events.SettingReplayed)],
        smallest=[replace(found, at_least=at_least(found)) for found in ends],
        took_s=time.monotonic() - began,
    )


def _unanswered(course: Course, t: float) -> events.Replayed:
    """Return the event about *course*, without any answer."""
    return events.Replayed(
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
    )


def _named(course: Course, row: events.SettingReplayed) -> events.SettingReplayed:
    """Return *row* with the names of the operations whose allocations failed."""

    def named(outcome: events.Outcome) -> events.Outcome:
        failed = outcome.failed
        return outcome if failed is None else replace(outcome, operation=course.operation_of(failed))

    return replace(row, in_order=named(row.in_order), waiting=row.waiting and named(row.waiting))


def answer(asked: Asked, parts: Sequence[events.Trace]) -> events.Replayed:
    """Return the table for the trace in *parts*; an event without rows if the trace cannot be replayed.

    Raises:
        ValueError: *parts* are not all parts of one trace, or one of them is damaged.
    """
    course = course_of(parts)
    built = build(Path(asked.tensorflow), REPLAY)
    if built.state != "built":
        unbuilt = msgspec.convert(built.unbuilt, events.Unbuilt)
        return replace(_unanswered(course, asked.t), unreplayed=events.Unreplayed.UNBUILT, unbuilt=unbuilt)
    return replayed(course, Path(built.path), asked.present, asked.t)


def main(_: list[str]) -> int:
    """Answer the question on stdin, at a low priority. Return the exit status: 1 if it cannot be decoded, else 0.

    The input is that of :meth:`~tfmemtop.experiments.whatif.settings.Asked.request`.
    """
    os.nice(19)
    first, *lines = sys.stdin.buffer.read().splitlines()
    try:
        asked = msgspec.json.decode(first, type=Asked)
        parts = [event for event in map(events.decode_event, lines) if isinstance(event, events.Trace)]
        found = answer(asked, parts)
    except (ValueError, msgspec.MsgspecError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.write(events.encode(found) + b"\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
