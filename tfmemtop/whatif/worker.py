"""Builds the replay program if there is none, and replays one trace: ``python -m tfmemtop.whatif.worker``.

A process of its own, out of the script's way. :func:`request` makes what it reads from stdin, a line of JSON and after
it a line for each part of the trace. It writes one line, the event :class:`~tfmemtop.events.replayed.Replayed`.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tfmemtop.events import Replayed, Trace, decode_event, encode
from tfmemtop.probe.build import REPLAY, build
from tfmemtop.whatif.course import course_of
from tfmemtop.whatif.settings import Present
from tfmemtop.whatif.table import replayed, told


class Asked(msgspec.Struct, frozen=True):
    """The TensorFlow to replay in, by its folder and version, and the setting that the process has."""

    tensorflow: str
    version: str
    present: Present
    t: float = 0.0


def request(asked: Asked, parts: Sequence[Trace]) -> bytes:
    """What the worker reads."""
    return b"\n".join([msgspec.json.encode(asked), *map(encode, parts)])


def answer(asked: Asked, parts: Sequence[Trace]) -> Replayed:
    """The table for the trace whose *parts* these are; an event without rows where there can be none.

    Raises:
        ValueError: the parts are not all of one trace, or damaged.
    """
    course = course_of(parts)
    built = build(Path(asked.tensorflow), asked.version, REPLAY)
    if built.state != "built":
        return told(course, asked.t, missing=built.text, remedy=built.remedy)
    return replayed(course, Path(built.path), asked.present, asked.t)


def main(_: list[str]) -> int:
    """Answer what stands on stdin, at a low priority. Exit status 1: it is not understood."""
    os.nice(19)
    first, *lines = sys.stdin.buffer.read().splitlines()
    try:
        asked = msgspec.json.decode(first, type=Asked)
        parts = [event for event in map(decode_event, lines) if isinstance(event, Trace)]
        event = answer(asked, parts)
    except (ValueError, msgspec.MsgspecError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.write(encode(event) + b"\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
