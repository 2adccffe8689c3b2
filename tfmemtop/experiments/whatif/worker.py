"""Builds the replay program if there is none, and replays one trace: ``python -m tfmemtop.experiments.whatif.worker``.

This runs in a separate process, so that it does not disturb the script. The answer is the
event :class:`~tfmemtop.events.replayed.Replayed`; ``worker_protocol.py`` describes input and output.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tfmemtop.events import Replayed, Trace, Unbuilt, Unreplayed, encode
from tfmemtop.experiments.whatif.course import course_of
from tfmemtop.experiments.whatif.settings import Asked
from tfmemtop.experiments.whatif.table import replayed, told
from tfmemtop.experiments.whatif.worker_protocol import serve
from tfmemtop.probe.build import REPLAY, build


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
