"""Readers of recordings, called in this process by the code path of the commands."""

import contextlib
import io
import json
import random
import re
import resource
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from tests.tools.corpus.shapes import bend, damage, encode, sample
from tfmemtop.cli.main import main
from tfmemtop.events import event_types
from tfmemtop.events.recording import RecordingError, read
from tfmemtop.findings.judgement import findings
from tfmemtop.state import State, apply

HANG_S = 2.0
"""Seconds of CPU time, because other programs may use the processor too. Nothing in here waits."""
MEMORY_MOST = 900 << 20
"""The most memory in bytes that this process may hold: all recordings of the tests, and the fold of one."""

_RECORDINGS = Path(__file__).parents[2] / "recordings"
_LINES = 300
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_DIFFERENT = 12  # how many different troubles are reported


class Hang(BaseException):
    """Raised in code that takes too long."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise :class:`Hang` in the block if it uses more than *seconds* of CPU time."""

    def late(number: int, frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Tally:
    """Troubles by the place where they arose. Each is reported once, with how often it arose."""

    def __init__(self) -> None:
        self._found: dict[str, int] = {}
        self.slowest = 0.0

    def add(self, what: str) -> None:
        """Count one more trouble."""
        self._found[what] = self._found.get(what, 0) + 1

    def failed(self, doing: str, error: BaseException) -> None:
        """Count an exception that *doing* raised."""
        places = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tfmemtop/" in frame.filename]
        at = f"{Path(places[-1].filename).name}:{places[-1].lineno}" if places else "?"
        self.add(f"{doing}: {'hangs' if isinstance(error, Hang) else type(error).__name__} in {at}")

    def troubles(self) -> list[str]:
        """Return the troubles, the most frequent first."""
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        if held > MEMORY_MOST:
            self.add(f"{held >> 20} MiB were held")
        ordered = sorted(self._found.items(), key=lambda item: -item[1])
        return [f"{what} ({times} times)" for what, times in ordered[:_DIFFERENT]]


def recording(seed: int, count: int) -> tuple[list[str], str]:
    """Make recordings with *count* lines in all, and damage them.

    Each goes through reading, fold, findings, why and compare. Return the troubles, and the figures in words.
    """
    chance = random.Random(seed)
    tally = Tally()
    files = sorted(_RECORDINGS.rglob("*.jsonl"))
    texts = {path: path.read_bytes().splitlines() for path in files}
    lines = made = 0
    with tempfile.TemporaryDirectory(prefix="tff-", dir="/tmp") as folder:
        path, other = Path(folder, "bent.jsonl"), chance.choice(files)
        while lines < count:
            whole = texts[chance.choice(files)]
            start = chance.randrange(max(1, len(whole) - _LINES))
            # Lines from the beginning, which has session and devices, and lines from anywhere.
            kept = [*whole[:40], *whole[max(40, start) : max(40, start) + chance.randrange(1, _LINES)]]
            path.write_bytes(b"\n".join(_bent(kept, chance)) + b"\n")
            lines += len(kept)
            made += 1
            _try(path, other, tally)
    return tally.troubles(), f"{made} recordings; the slowest step {tally.slowest:.2f} s"


def _bent(lines: list[bytes], chance: random.Random) -> list[bytes]:
    lines = list(lines)
    for _ in range(chance.choice((1, 3, 10, 40))):
        at = chance.randrange(1, len(lines))
        if chance.random() < 0.3:
            value = bend(sample(event_types(), chance), chance)
            if isinstance(value, dict):
                value["t"] = chance.choice((0.0, 5.0, 1e6, -1, 1e308))
        else:
            try:
                value = bend(json.loads(lines[at]), chance, chance.choice((1, 2, 6)))
            except (ValueError, RecursionError):
                continue  # the line is damaged already
        lines[at] = encode(value, chance).replace(b"\n", b" ")
        if chance.random() < 0.15:
            lines[at] = damage(lines[at], chance).replace(b"\n", b" ")
    return lines


def _try(path: Path, other: Path, tally: Tally) -> None:
    def fold() -> None:
        state = State()
        with contextlib.suppress(RecordingError):
            for event in read(path).events():
                apply(state, event)
        for finding in findings(state):
            assert finding.said.text

    def command(*words: str) -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        # Every line of stderr has to be a message of ours. The last is the reason. Before it there may be one about
        # damaged lines that were left out.
        if code not in (0, 2) or (code == 2 and err.getvalue().count("tfmemtop: ") != err.getvalue().count("\n")):
            tally.add(f"{words[0]} ends with {code}: {err.getvalue()[-100:]!r}")
        if found := _CONTROL.search(out.getvalue() + err.getvalue()):
            tally.add(f"{words[0]} prints {found[0]!r}")

    steps: dict[str, Callable[[], None]] = {
        "fold": fold,
        "why": lambda: command("why", str(path)),
        "compare": lambda: command("compare", str(path), str(other)),
    }
    for name, step in steps.items():
        began = time.process_time()
        try:
            with within(HANG_S):
                step()
        except (Exception, Hang) as error:
            tally.failed(name, error)
        tally.slowest = max(tally.slowest, time.process_time() - began)
