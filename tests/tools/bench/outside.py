"""What it costs a training to be read from outside: seconds a step while it is read, and while it is not read.

One training takes turns of a second. In half of them, chosen randomly, screen and engine read it; in the others they
are stopped. So each ratio is of neighbouring seconds of one process. The cost is far below the random variation of such
a ratio. Therefore the training is also read a hundred times as often as the screen reads it, and a hundredth of that
cost is reported. There is also an upper limit: no reading delays the process for longer than the reading itself takes.
"""

import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import psutil

from tests.own_sessions import own_sessions
from tests.tools.bench.overhead import _await, _connected
from tests.tools.bench.table import Row, likely
from tests.tools.bench.terminal import TFMEMTOP, Terminal, private_sessions
from tfmemtop.engine.sources.outside.look import Look

BOUND = 1.002
_OFTEN = 100
_START_S = 120.0
_SCREEN = "ten times a second, on the screen and recorded with maps"
_POOL = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "2048", "TF_CPP_MIN_LOG_LEVEL": "2"}
_KINDS = {"keras": "a Keras training step", "eager": "an eager loop"}


class _Often:
    """Reads a process 1000 times a second, in a thread, while it is switched on."""

    def __init__(self, pid: int) -> None:
        self._look = Look(pid)
        self._on = threading.Event()
        self.cost_s: list[float] = []
        threading.Thread(target=self._run, daemon=True).start()

    def switch(self, on: bool) -> None:
        """Start to read, or stop."""
        if on:
            self._look.refresh()
            self._on.set()
        else:
            self._on.clear()

    def _run(self) -> None:
        while True:
            self._on.wait()
            begun = time.perf_counter()
            self._look.read()
            self.cost_s.append(time.perf_counter() - begun)
            time.sleep(0.001)


def measure(quick: bool) -> list[Row]:
    """Measure ratios of neighbouring turns, for the screen's pace and for a hundred times that pace."""
    rounds = 6 if quick else 40
    chance = random.Random(1)
    ratios: dict[tuple[str, str], list[float]] = {}
    step_s: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    with private_sessions() as folder, ExitStack() as stack:
        command, listener = stack.enter_context(_connected(Path(folder) / "steps.sock"))
        environment = {**os.environ, **_POOL}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(_await, process)
        connection, _ = listener.accept()
        stack.callback(connection.close)
        file = stack.enter_context(connection.makefile("rw"))

        def turn(kind: str) -> float:
            print(kind, file=file, flush=True)
            return float(file.readline())

        watch = [*TFMEMTOP, "attach", str(process.pid), "--record", str(folder / "kept")]
        screen = stack.enter_context(Terminal(watch, 160, 48, {}))
        screen.wait_for("peak", _START_S)
        ours = [psutil.Process(screen.pid), psutil.Process(own_sessions()[0].pid)]
        often = _Often(process.pid)

        def watched(on: bool) -> None:
            for one in ours:
                one.send_signal(signal.SIGCONT if on else signal.SIGSTOP)

        for manner, switch in ((_SCREEN, watched), ("often", often.switch)):
            for _ in range(rounds):
                for kind in _KINDS:
                    # The order is random, so that neither of the two always comes first.
                    taken = {}
                    for on in chance.sample((True, False), 2):
                        switch(on)
                        taken[on] = turn(kind)
                    switch(False)
                    step_s[kind].append(taken[False])
                    ratios.setdefault((kind, manner), []).append(taken[True] / taken[False])
        watched(True)
    longest = statistics.median(often.cost_s) * 10
    rows = []
    for kind, what in _KINDS.items():
        name = f"{what} ({statistics.median(step_s[kind]) * 1e3:.1f} ms) read from outside"
        every = ratios[kind, _SCREEN]
        rows.append(Row(f"{name}, {_SCREEN}", f"{BOUND:g}", likely(every, 4), f"{len(every)} pairs"))
        hundredth = [1 + (ratio - 1) / _OFTEN for ratio in ratios[kind, "often"]]
        rows.append(
            Row(
                f"{name}: a hundredth of what a thousand times a second costs",
                f"{BOUND:g}",
                likely(hundredth, 5),
                f"{len(hundredth)} pairs; at most {longest:.4%} of a second is spent on ten readings",
                statistics.median(hundredth) <= BOUND,
            )
        )
    return rows


if __name__ == "__main__":
    sys.exit("python -m tests.tools.bench outside")
