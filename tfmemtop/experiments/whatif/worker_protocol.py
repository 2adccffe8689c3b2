"""The request to a process that replays, and its answer.

The process reads from stdin: first a line of JSON with the question, then a line for each part of the traces. It writes
one line to stdout.
"""

import os
import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from tfmemtop.events import Trace, decode_event, encode

Q = TypeVar("Q", bound=msgspec.Struct)


def request(asked: msgspec.Struct, parts: Iterable[Trace]) -> bytes:
    """Return the text that such a process reads."""
    return b"\n".join([msgspec.json.encode(asked), *map(encode, parts)])


def serve(kind: type[Q], answer: Callable[[Q, list[Trace]], bytes]) -> int:
    """Answer the question on stdin, which is of *kind*, at a low priority.

    Return the exit status: 0, or 1 if the question or the traces cannot be decoded.
    """
    os.nice(19)
    first, *lines = sys.stdin.buffer.read().splitlines()
    try:
        asked = msgspec.json.decode(first, type=kind)
        parts = [event for event in map(decode_event, lines) if isinstance(event, Trace)]
        answered = answer(asked, parts)
    except (ValueError, msgspec.MsgspecError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.write(answered + b"\n")
    return 0
