"""What it costs a training to be watched: seconds a step under tfmemtop, compared with bare.

The same script runs four times: bare, bare once more, under ``tfmemtop record`` and under the live screen. They take
turns of a second and more. A script that does not have its turn is stopped, and its tfmemtop with it. So each ratio is
of neighbouring seconds, and other load on the machine affects all of them alike. The places of a process's memory and
threads make it some percent faster or slower for its whole life. Therefore all four are started several times.
Bare compared with bare shows how much of a ratio is random variation.
"""

import os
import random
import signal
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from tests.starting import PROGRAM
from tests.tools.bench.table import Row, has_gpu, likely
from tests.tools.terminal import Terminal, private_sessions

SCRIPT = Path(__file__).parent / "scripts" / "steps.py"
BOUND = 1.01
START_S, TURN_S, END_S = 180.0, 30.0, 30.0

_POOL = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "2048"}
_GROWTH = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}
_KINDS = {"keras": "a Keras training step", "eager": "an eager loop"}
_MANNERS = ("bare", "bare again", "record", "the live screen")
_PACE = ("--interval", "0.1")


class _Turns:
    """One running script. All of its processes are stopped except in its turn."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self._top = psutil.Process(pid)
        self._connection = connection
        self._file = connection.makefile("rw")
        self.send(signal.SIGSTOP)

    def send(self, number: int) -> None:
        """Send the signal *number* to every process of this script, the outermost first."""
        for process in [self._top, *self._top.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def end(self) -> None:
        """Let the script go on to its end."""
        self._file.close()
        self._connection.close()
        self.send(signal.SIGCONT)

    def take(self, kind: str) -> float:
        """Give the script a turn. Return the seconds that a step of *kind* took in it."""
        self.send(signal.SIGCONT)
        try:
            print(kind, file=self._file, flush=True)
            return float(self._file.readline())
        finally:
            self.send(signal.SIGSTOP)


@contextmanager
def _connected(path: Path) -> Iterator[tuple[list[str], socket.socket]]:
    """Yield the script's command line, and the socket to which the script will connect."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        listener.settimeout(START_S)
        yield [sys.executable, str(SCRIPT), str(path)], listener


def _accept(listener: socket.socket, pid: int, stack: ExitStack) -> _Turns:
    connection, _ = listener.accept()
    connection.settimeout(TURN_S)
    turns = _Turns(pid, connection)
    stack.callback(turns.end)
    return turns


def _piped(command: list[str], environment: dict[str, str], stack: ExitStack) -> int:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(_await, process)
    return process.pid


def _await(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _generation(folder: Path, rounds: int, chance: random.Random) -> dict[str, dict[str, list[float]]]:
    """Start all four, and give each *rounds* turns of each kind. Return kind → manner → seconds a step."""
    environment = {**os.environ, **(_GROWTH if has_gpu() else _POOL), "TF_CPP_MIN_LOG_LEVEL": "2"}
    recording = folder / "steps.jsonl"
    taken: dict[str, dict[str, list[float]]] = {kind: {} for kind in _KINDS}
    with ExitStack() as stack:
        started: dict[str, tuple[socket.socket, int]] = {}
        for manner in chance.sample(_MANNERS, len(_MANNERS)):  # the order of the starts is random too
            command, listener = stack.enter_context(_connected(folder / f"{len(started)}.sock"))
            if manner == "the live screen":
                terminal = Terminal([PROGRAM, *_PACE, "--", *command], environment, size=(160, 48))
                pid = stack.enter_context(terminal).pid
                screen = terminal
            else:
                record = [PROGRAM, "record", "-o", str(recording), *_PACE, "--"] if manner == "record" else []
                pid = _piped([*record, *command], environment, stack)
            started[manner] = listener, pid
        turns = {manner: _accept(listener, pid, stack) for manner, (listener, pid) in started.items()}
        for _ in range(rounds):
            for kind in _KINDS:
                for manner in chance.sample(_MANNERS, len(_MANNERS)):
                    taken[kind].setdefault(manner, []).append(turns[manner].take(kind))
        screen.wait_for("peak", TURN_S)  # the peak of an allocator: it has been read
    if recording.read_bytes().count(b'"allocator"') < rounds:
        raise RuntimeError("hardly an allocator was read: what was measured is not what it says")
    return taken


def measure(quick: bool) -> list[Row]:
    """Compare over several starts of each, and several rounds in each start."""
    return compare(*((1, 6) if quick else (8, 5)))


def compare(generations: int, rounds: int) -> list[Row]:
    """Compare the turns of each round with the mean of the round's two bare turns."""
    chance = random.Random(1)
    ratios: dict[tuple[str, str], list[float]] = {}
    step_s: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    for _ in range(generations):
        with private_sessions() as folder:
            taken = _generation(folder, rounds, chance)
        for kind, manners in taken.items():
            bare = [(a + b) / 2 for a, b in zip(manners["bare"], manners["bare again"], strict=True)]
            step_s[kind] += bare
            for manner in ("record", "the live screen"):
                pairs = zip(manners[manner], bare, strict=True)
                ratios.setdefault((kind, manner), []).extend(watched / alone for watched, alone in pairs)
            pairs = zip(manners["bare again"], manners["bare"], strict=True)
            ratios.setdefault((kind, "bare"), []).extend(again / alone for again, alone in pairs)
    rows = []
    for kind, what in _KINDS.items():
        for manner in ("record", "the live screen"):
            found = ratios[kind, manner]
            rows.append(
                Row(
                    f"{what} ({statistics.median(step_s[kind]) * 1e3:.1f} ms) under {manner} at 10 readings a second"
                    ", against bare",
                    f"{BOUND}×",
                    f"{likely(found, 3)}×",
                    f"{len(found)} rounds of neighbouring turns of 1 s, {generations} starts of each; "
                    f"chance, as bare against bare: {likely(ratios[kind, 'bare'], 3)}×",
                    statistics.median(found) <= BOUND,
                )
            )
    return rows
