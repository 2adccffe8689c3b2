"""Replays what runs with other values of a number would allocate.

This is run as a module, in a separate process; ``worker_protocol.py`` describes its input and output.
:meth:`~tfmemtop.experiments.whatif.expected.Expectations.request` makes the question. The answer is
:class:`~tfmemtop.experiments.whatif.expected.Expected` as JSON.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tfmemtop.events import Trace
from tfmemtop.experiments.whatif.course import course_of
from tfmemtop.experiments.whatif.expected import Expected, Question
from tfmemtop.experiments.whatif.scaled import Scaling, Valued
from tfmemtop.experiments.whatif.waiting import runs_of
from tfmemtop.experiments.whatif.worker_protocol import serve
from tfmemtop.probe import replaying
from tfmemtop.probe.build import REPLAY, build
from tfmemtop.probe.replaying import NotReplayed, ReplayAnswer, Replayer
from tfmemtop.units import MIB

_MORE_SHARE, _MORE_LEAST = 0.02, 3 * MIB
"""Real runs have passed under limits that were this much below the replay's lower end, see ``settings.py``."""


def answer(asked: Question, parts: Sequence[Trace]) -> Expected | None:
    """Return the values that are expected from the two traces in *parts*; ``None`` if the replay cannot be built.

    Raises:
        ValueError: *parts* are not all parts of two traces, or one of them is damaged.
    """
    built = build(Path(asked.tensorflow), asked.version, REPLAY)
    if built.state != "built":
        return None
    (first, second), traces = asked.values, (parts[: asked.parts], parts[asked.parts :])
    smaller, larger = (Valued(value, course_of(trace)) for value, trace in zip((first, second), traces, strict=True))
    scaling = Scaling(smaller, larger)
    runs = runs_of(larger.course)

    def fits(value: int, limit: int, *, surely: bool) -> bool:
        course = scaling.course(value)
        question = replaying.Question(asked.growth, asked.collects, limit, alone=not surely)
        try:
            with Replayer(Path(built.path), course.events, course.steps, course.scratch, runs) as replayer:
                (found,) = replayer.ask([question])
        except NotReplayed:
            return False  # for example, the sizes are beyond all bounds
        return isinstance(found, ReplayAnswer) and (found.in_order if surely else found.waiting).fits

    room = asked.limit + max(_MORE_LEAST, int(asked.limit * _MORE_SHARE))
    bounds = asked.lowest, asked.highest
    surely = largest(lambda value: fits(value, asked.limit, surely=True), second, *bounds)
    likely = max(surely, largest(lambda value: fits(value, asked.limit, surely=False), surely, *bounds))
    at_most = max(likely, largest(lambda value: fits(value, room, surely=False), likely, *bounds))
    return Expected(surely, likely, at_most, asked.values)


def largest(fits: Callable[[int], bool], near: int, lowest: int, highest: int) -> int:
    """Return the largest value that *fits*, exact to half a percent, or ``lowest - 1`` if none does.

    The search begins at *near* with growing steps, and then halves the range.
    """
    good, bad = lowest - 1, highest + 1
    value = min(max(near, lowest), highest)
    step = max(1, value // 8)
    while True:
        if fits(value):
            good = value
        else:
            bad = value
        if lowest <= good and bad <= highest:
            break
        following = min(value + step, highest) if good == value else max(value - step, lowest)
        if following == value:
            return good
        value, step = following, step * 2
    while bad - good > max(1, good // 200):
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def main(_: list[str]) -> int:
    """Answer the question on stdin. Return the exit status: 0, or 1 if the question cannot be decoded."""
    return serve(Question, lambda asked, parts: msgspec.json.encode(answer(asked, parts)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
