"""Builds the replay program if there is none, and replays one trace: ``python -m tfmemtop.whatif.worker``.

A process of its own, out of the script's way, asked as ``asking.py`` says. It answers with the event
:class:`~tfmemtop.events.replayed.Replayed`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tfmemtop.events import Replayed, Trace, Unbuilt, Unreplayed, encode
from tfmemtop.probe.build import REPLAY, build
from tfmemtop.whatif.asking import serve
from tfmemtop.whatif.course import course_of
from tfmemtop.whatif.settings import Present
from tfmemtop.whatif.table import replayed, told


class Asked(msgspec.Struct, frozen=True):
    """The TensorFlow to replay in, by its folder and version, and the setting that the process has."""

    tensorflow: str
    version: str
    present: Present
    t: float = 0.0


def answer(asked: Asked, parts: Sequence[Trace]) -> Replayed:
    """The table for the trace whose *parts* these are; an event without rows where there can be none.

    Raises:
        ValueError: the parts are not all of one trace, or damaged.
    """
    course = course_of(parts)
    built = build(Path(asked.tensorflow), asked.version, REPLAY)
    if built.state != "built":
        unbuilt = msgspec.convert(built.unbuilt, Unbuilt)
        return told(course, asked.t, unreplayed=Unreplayed.UNBUILT, unbuilt=unbuilt)
    return replayed(course, Path(built.path), asked.present, asked.t)


def main(_: list[str]) -> int:
    """Answer what stands on stdin. Exit status 1: it is not understood."""
    return serve(Asked, lambda asked, parts: encode(answer(asked, parts)))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
