"""Runs the program that replays allocations, sends it a trace and questions, and parses its answers.

The program runs TensorFlow's own BFC allocator over memory that is not there, see ``replay.cc``.
"""

import os
import struct
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tfmemtop.exit_codes import SIGNALLED

_HEAD = struct.Struct("=8s7q")
_QUESTION = struct.Struct("=4q")
_MAGIC = b"TFMRPL4\0"
_FIRST_OF_TWO = b"order "  # lines of an answer
_MEMORY_LEAST, _MEMORY_MOST = 1 << 28, 8 << 30
_UNSATISFIED, _NO_MEMORY = 2, 3  # exit statuses
_PASSED_ON = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PATH")


class Follows(NamedTuple):
    """What comes before and after the run number ``run`` of a function in the thread that calls it and waits for it.

    Before the run's first allocation, the thread makes event ``event``, and all allocations of run ``before`` are made.
    After the run's last allocation, the thread makes event ``after``. Each of the three is -1 if there is none.
    """

    run: int
    event: int
    before: int
    after: int


class Runs(NamedTuple):
    """Runs of functions. ``of`` has for each allocation the number of the run that makes it, or -1."""

    of: Sequence[int] = ()
    order: Sequence[Follows] = ()


class Question(NamedTuple):
    """A question: what happens with growth on or off, under a limit of *limit* bytes (``None``: without a limit)?

    ``collects`` is BFC's garbage collection. With ``smallest``, the question is for the smallest limits that work
    instead.
    """

    growth: bool
    collects: bool
    limit: int | None = None
    smallest: bool = False


class ReplayOutcome(NamedTuple):
    """The outcome of a replay, in bytes. The figures are those at its end, which is where it failed if it did not fit.

    ``failed`` is the number of the event, an allocation of ``asked`` bytes, for which ``lacking`` bytes were missing.
    ``growths`` counts how often the pool took memory, ``waits`` how many allocations had to wait.
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


class ReplayAnswer(NamedTuple):
    """The outcomes of two replays.

    In ``in_order``, one event comes after the other, as recorded. In ``waiting``, an allocation that finds no room
    waits, and its thread with it.

    Threads take turns in another order in each run. So the events are also replayed, with waiting, in some orders near
    the recorded one. If all fits in the recorded order, but not in one of the others, ``in_order`` is the outcome of
    that other order.
    """

    in_order: ReplayOutcome
    waiting: ReplayOutcome


class Ends(NamedTuple):
    """The smallest limits in bytes, whole MiB.

    Under ``surely``, all fits in the recorded order, and with waiting in each of the orders near it. Under
    ``at_least``, all fits with waiting in at least one of these orders, or all but scratch memory fits in the recorded
    order.
    """

    surely: int
    at_least: int


class NotReplayed(Exception):
    """The program gave no answers. *why* is a value of ``Unreplayed`` in ``events/replayed.py``."""

    def __init__(self, why: str, detail: str = "", count: int | None = None) -> None:
        super().__init__(why, detail, count)
        self.why, self.detail, self.count = why, detail, count


_NO_RUNS = Runs()


class Replayer:
    """The running *program* with one trace, which answers questions until it is closed; a context manager.

    An event is a pair. For an allocation, it is twice the number of the thread, from 0 on, and the bytes requested. For
    a free, it is one more than that, and the number of the allocation that is freed. *steps* are numbers of events,
    *scratch* of allocations that TensorFlow can do without: it requests such memory once and never waits for it. *runs*
    says which events wait for which. *seconds* limits the program's processor time. Its memory is limited to half of
    what the machine has free. A question that was asked before is answered at once.

    Raises:
        NotReplayed: the program cannot be started.
    """

    def __init__(
        self,
        program: Path,
        events: Sequence[tuple[int, int]],
        steps: Sequence[int],
        scratch: Sequence[int] = (),
        runs: Runs = _NO_RUNS,
        *,
        seconds: int = 60,
    ) -> None:
        self._seconds = seconds
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        try:
            self._process = subprocess.Popen(
                [program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # TensorFlow's own messages
                env=environment | {"TF_CPP_MIN_LOG_LEVEL": "3"},
                cwd="/",
            )
        except OSError as error:
            raise NotReplayed("not_started", str(error)) from error
        # A program that hangs is killed in the end.
        self._timer = threading.Timer(10 * seconds, self._process.kill)
        self._timer.daemon = True
        self._timer.start()
        self._send(encode(events, steps, scratch, runs, seconds=seconds, memory=_memory()))

    def __enter__(self) -> "Replayer":
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._process.kill()
        self._process.communicate()

    def ask(self, questions: Sequence[Question]) -> list[ReplayAnswer | Ends | None]:
        """Return the answers; ``None`` where the book-keeping of a pool would take more memory than is allowed.

        Raises:
            NotReplayed: the program does not give all answers.
        """
        self._send(
            b"".join(
                _QUESTION.pack(int(question.smallest), question.growth, question.collects, question.limit or 0)
                for question in questions
            )
        )
        answers = [*parse(self._lines(len(questions)))]
        if len(answers) != len(questions):
            raise self._why(len(answers))
        return answers

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the program has ended; the reason is reported when there is no answer

    def _lines(self, questions: int) -> Iterator[str]:
        """Yield the lines that the program writes, until so many *questions* are answered, or it ends."""
        assert self._process.stdout is not None
        while questions and (line := self._process.stdout.readline()):
            yield line.decode(errors="replace")
            questions -= not line.startswith(_FIRST_OF_TWO)

    def _why(self, answered: int) -> NotReplayed:
        status = self._process.wait()
        if not self._timer.is_alive():
            return NotReplayed("slow", count=10 * self._seconds)
        if status == _NO_MEMORY:
            return NotReplayed("no_memory")
        if status == _UNSATISFIED:
            return NotReplayed("refused")
        if status != 0:
            return NotReplayed("ended", count=status if status > 0 else SIGNALLED - status)
        return NotReplayed("too_few", count=answered)


def run(
    program: Path,
    events: Sequence[tuple[int, int]],
    steps: Sequence[int],
    questions: Sequence[Question],
    scratch: Sequence[int] = (),
    runs: Runs = _NO_RUNS,
) -> list[ReplayAnswer | Ends | None]:
    """Ask all *questions* at once, and return the answers, see :class:`Replayer`.

    Raises:
        NotReplayed: the program does not give all answers.
    """
    with Replayer(program, events, steps, scratch, runs) as replayer:
        return replayer.ask(questions)


def encode(
    events: Sequence[tuple[int, int]],
    steps: Sequence[int],
    scratch: Sequence[int],
    runs: Runs,
    *,
    seconds: int,
    memory: int,
) -> bytes:
    """Return a trace in the form in which the program reads it before any question."""
    head = _HEAD.pack(_MAGIC, seconds, memory, *map(len, (events, steps, scratch, *runs)))
    flat = [*_flat(events), *steps, *scratch, *runs.of, *_flat(runs.order)]
    return head + struct.pack(f"={len(flat)}q", *flat)


def parse(lines: Iterable[str]) -> Iterator[ReplayAnswer | Ends | None]:
    """Yield the answers in the *lines* of the program's output.

    Raises:
        NotReplayed: the lines are not such output.
    """
    in_order: ReplayOutcome | None = None
    try:
        for line in lines:
            kind, *figures = line.split()
            if kind == "memory":
                yield None
            elif kind == "smallest":
                yield Ends(*map(int, figures))
            elif kind == "order":
                in_order = _outcome(figures)
            elif in_order is not None:
                yield ReplayAnswer(in_order, _outcome(figures))
                in_order = None
    except (TypeError, ValueError) as error:
        raise NotReplayed("not_understood", str(error)) from error


def _outcome(figures: list[str]) -> ReplayOutcome:
    fits, *rest = map(int, figures)
    return ReplayOutcome(bool(fits), *rest)


def _flat(rows: Iterable[tuple[int, ...]]) -> Iterator[int]:
    for row in rows:
        yield from row


def _memory() -> int:
    """Return how many bytes of memory the program may take."""
    try:
        text = Path("/proc/meminfo").read_text()
        free = next(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        free = _MEMORY_MOST
    return min(_MEMORY_MOST, max(_MEMORY_LEAST, free // 2))
