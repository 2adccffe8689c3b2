"""Runs the program that replays allocations, sends it a trace and questions, and parses its answers.

The program runs TensorFlow's own BFC allocator over memory that is not there, see ``probe/replay.cc``.
"""

import os
import struct
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tfmemtop.events import Outcome, SettingReplayed, SmallestLimits
from tfmemtop.exit_codes import SIGNALLED

_HEAD = struct.Struct("=8s8q")
_QUESTION = struct.Struct("=4q")
_MAGIC = b"TFMRPL5\0"
_FIRST_OF_TWO = b"order "  # lines of an answer
_MEMORY_LEAST, _MEMORY_MOST = 1 << 28, 8 << 30
_PROCESSOR_S, _LONGEST_S = 60, 600  # of processor time, and of time in all
_NO_MEMORY = 3  # an exit status
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


Answer: TypeAlias = SettingReplayed | SmallestLimits | None
"""Of the smallest limits: under ``surely``, all fits in the recorded order, and with waiting in each of the orders near
it. Under ``alike``, so does all but what is untaken. Under ``at_least``, all fits with waiting in at least one of these
orders, or all but scratch memory fits in the recorded order.
"""


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
    *scratch* of allocations that TensorFlow can do without: it requests such memory once and never waits for it.
    *untaken* are those of *scratch* that were to try kernels that are not taken. *runs* says which events wait for
    which. The program's processor time is limited. Its memory is limited to half of
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
        untaken: Sequence[int] = (),
    ) -> None:
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
        self._timer = threading.Timer(_LONGEST_S, self._process.kill)
        self._timer.daemon = True
        self._timer.start()
        self._send(encode(events, steps, scratch, untaken, runs, memory=_memory()))

    def __enter__(self) -> "Replayer":
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._process.kill()
        self._process.communicate()

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
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
        answers = [*parse(questions, self._lines(len(questions)))]
        if len(answers) != len(questions):
            raise self._why()
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

    def _why(self) -> NotReplayed:
        status = self._process.wait()
        if not self._timer.is_alive():
            return NotReplayed("slow", count=_LONGEST_S)
        if status == _NO_MEMORY:
            return NotReplayed("no_memory")
        return NotReplayed("ended", count=status if status >= 0 else SIGNALLED - status)


def run(
    program: Path,
    events: Sequence[tuple[int, int]],
    steps: Sequence[int],
    questions: Sequence[Question],
    scratch: Sequence[int] = (),
    runs: Runs = _NO_RUNS,
    untaken: Sequence[int] = (),
) -> list[Answer]:
    """Ask all *questions* at once, and return the answers, see :class:`Replayer`.

    Raises:
        NotReplayed: the program does not give all answers.
    """
    with Replayer(program, events, steps, scratch, runs, untaken) as replayer:
        return replayer.ask(questions)


def encode(
    events: Sequence[tuple[int, int]],
    steps: Sequence[int],
    scratch: Sequence[int],
    untaken: Sequence[int],
    runs: Runs,
    *,
    memory: int,
) -> bytes:
    """Return a trace in the form in which the program reads it before any question."""
    head = _HEAD.pack(_MAGIC, _PROCESSOR_S, memory, *map(len, (events, steps, scratch, untaken, *runs)))
    flat = [*_flat(events), *steps, *scratch, *untaken, *runs.of, *_flat(runs.order)]
    return head + struct.pack(f"={len(flat)}q", *flat)


def parse(questions: Iterable[Question], lines: Iterable[str]) -> Iterator[Answer]:
    """Yield the answers to *questions* in the *lines* of the program's output.

    Threads take turns in another order in each run. So the program also replays the events, with waiting, in some
    orders near the recorded one. If all fits in the recorded order, but not in one of the others, it gives the outcome
    of that other order as the one in order.

    Raises:
        ValueError: the lines are not such output.
    """
    words = map(str.split, lines)
    for question, (kind, *figures) in zip(questions, words, strict=False):
        if kind != "order":
            yield SmallestLimits(question.growth, question.collects, *map(int, figures)) if kind == "smallest" else None
        elif (second := next(words, None)) is not None:
            in_order, waiting = _outcome(figures), _outcome(second[1:])
            asked = question.growth, question.collects, question.limit
            yield SettingReplayed(*asked, in_order, None if in_order.fits else waiting)


def _outcome(figures: list[str]) -> Outcome:
    """Return the outcome in a line's *figures*. What failed has no operation yet."""
    fits, in_use, peak, pool, peak_pool, growths, free, made, failed, asked, lacking, waits = map(int, figures)
    at = None if fits else failed
    return Outcome(bool(fits), in_use, peak, pool, peak_pool, growths, free, made, waits, at, "", asked, lacking)


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
