"""Asks the program that replays allocations: what it is sent, what it answers, and how it is run.

It runs TensorFlow's own BFC allocator over memory that is not there, see ``replay.cc``.
"""

import os
import struct
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_HEAD = struct.Struct("=8s5q")
_MAGIC = b"TFMRPL1\0"
_MEMORY_LEAST, _MEMORY_MOST = 1 << 28, 8 << 30
_UNSATISFIED, _NO_MEMORY = 2, 3  # exit statuses
_PASSED_ON = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PATH")


class Question(NamedTuple):
    """What happens with growth on or off, under a limit of *limit* bytes (``None``: without one)?

    ``collects`` is BFC's garbage collection. With ``smallest``, the smallest limits that work are asked for instead.
    """

    growth: bool
    collects: bool
    limit: int | None = None
    smallest: bool = False


class Outcome(NamedTuple):
    """How a replay went; bytes. The figures are those at its end, which is where it ``failed`` if it did not fit.

    ``failed`` is the number of the event, an allocation of ``asked`` bytes, for which ``lacking`` bytes were missing.
    ``growths`` is how often the pool took memory, ``waits`` how many allocations had to wait.
    """

    fits: bool
    in_use: int
    peak: int
    pool: int
    peak_pool: int
    growths: int
    largest_free: int
    allocations: int
    failed: int
    asked: int
    lacking: int
    waits: int


class Answer(NamedTuple):
    """``in_order``: one event after the other, as they came. ``waiting``: what finds no room waits, by thread."""

    in_order: Outcome
    waiting: Outcome


class Ends(NamedTuple):
    """The smallest limits in bytes, whole MiB: under ``surely`` all fits in order, under ``at_least`` by waiting."""

    surely: int
    at_least: int


class NotReplayed(Exception):
    """The program gave no answers. The message says why, in words for the user."""


def run(
    program: Path,
    events: Sequence[tuple[int, int]],
    steps: Sequence[int],
    questions: Sequence[Question],
    *,
    seconds: int = 60,
) -> list[Answer | Ends | None]:
    """The answers of *program*; ``None`` where a pool's books would take more memory than is allowed.

    An event is its thread, from 0 on, times two, and the bytes asked for; of a free it is one more, and the number of
    the allocation that is freed. *steps* are numbers of events. *seconds* bound its time on the processor; its memory
    is bounded by half of what the machine has free.

    Raises:
        NotReplayed: there are no answers.
    """
    sent = encode(events, steps, questions, seconds=seconds, memory=_memory())
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    try:
        done = subprocess.run(
            [program],
            input=sent,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # TensorFlow's own remarks
            env=environment | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            cwd="/",
            timeout=10 * seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotReplayed(f"the replay was not done after {10 * seconds} s") from None
    except OSError as error:
        raise NotReplayed(f"the replay cannot be started: {error}") from error
    if done.returncode == _NO_MEMORY:
        raise NotReplayed("there is too little memory free for the replay")
    if done.returncode != 0:
        how = "its input was refused" if done.returncode == _UNSATISFIED else f"exit status {done.returncode}"
        raise NotReplayed(f"the replay ended before it had answered: {how}")
    answers = list(parse(done.stdout.decode()))
    if len(answers) != len(questions):
        raise NotReplayed(f"the replay answered {len(answers)} of {len(questions)} questions")
    return answers


def encode(
    events: Sequence[tuple[int, int]],
    steps: Sequence[int],
    questions: Sequence[Question],
    *,
    seconds: int,
    memory: int,
) -> bytes:
    """The program's input."""
    asked = [(question.smallest, question.growth, question.collects, question.limit or 0) for question in questions]
    head = _HEAD.pack(_MAGIC, seconds, memory, len(events), len(steps), len(asked))
    flat = [*_flat(events), *steps, *_flat(asked)]
    return head + struct.pack(f"={len(flat)}q", *flat)


def parse(text: str) -> Iterator[Answer | Ends | None]:
    """The answers in the program's output.

    Raises:
        NotReplayed: it is not such output.
    """
    in_order: Outcome | None = None
    try:
        for line in text.splitlines():
            kind, *figures = line.split()
            if kind == "memory":
                yield None
            elif kind == "smallest":
                yield Ends(*map(int, figures))
            elif kind == "order":
                in_order = _outcome(figures)
            elif in_order is not None:
                yield Answer(in_order, _outcome(figures))
                in_order = None
    except (TypeError, ValueError) as error:
        raise NotReplayed(f"the replay's answer is not understood: {error}") from error


def _outcome(figures: list[str]) -> Outcome:
    fits, *rest = map(int, figures)
    return Outcome(bool(fits), *rest)


def _flat(rows: Iterable[tuple[int, ...]]) -> Iterator[int]:
    for row in rows:
        yield from row


def _memory() -> int:
    """Bytes that the program may take."""
    try:
        text = Path("/proc/meminfo").read_text()
        free = next(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        free = _MEMORY_MOST
    return min(_MEMORY_MOST, max(_MEMORY_LEAST, free // 2))
