"""What watching itself costs, in CPU and memory: screen and engine together, one script, at their normal pace."""

import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.own_sessions import own_sessions
from tests.starting import PROGRAM
from tests.tools.bench.table import Row, has_gpu, spread
from tests.tools.bench.yardstick import against, repaint_ms, textual_mb
from tests.tools.terminal import Terminal, private_sessions

SCRIPT = Path(__file__).parent / "scripts" / "light.py"
BOUND_CPU = 9.0
"""As a multiple of one repaint of as many plain cells a second."""
BOUND_MEMORY, BOUND_MEMORY_GPU = 3.0, 4.5
"""As multiples of a Python that has imported ``textual.app``. With a GPU the driver's library is added."""
SIZE = (160, 48)
_SETTLE_S = 5.0


def cpu_percents(processes: Sequence[psutil.Process], windows: int, window_s: float) -> list[list[float]]:
    """Return for each of the *windows* how many percent of a core each process took."""

    def taken_s() -> list[float]:
        times = [process.cpu_times() for process in processes]
        return [float(each.user + each.system) for each in times]

    percents = []
    for _ in range(windows):
        begun, before = time.perf_counter(), taken_s()
        time.sleep(window_s)
        passed, after = time.perf_counter() - begun, taken_s()
        percents.append([100 * (b - a) / passed for a, b in zip(before, after, strict=True)])
    return percents


def memory_mb(process: psutil.Process) -> tuple[float, float]:
    """Return the proportional and the resident set in MB.

    Memory shared with other processes counts in part in the first, and whole in the second.
    """
    info = process.memory_full_info()
    return info.pss / 1e6, info.rss / 1e6


def measure(quick: bool) -> list[Row]:
    """Measure windows of ten seconds, once the script is being read."""
    windows, window_s = (2, 5.0) if quick else (6, 10.0)
    pool = {} if has_gpu() else {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "1024"}
    environment = {**pool, "TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "2"}
    with private_sessions():
        command = [PROGRAM, "--interval", "0.1", "--", sys.executable, str(SCRIPT)]
        with Terminal(command, os.environ | environment, size=SIZE) as terminal:
            terminal.wait_for("peak", 120)
            time.sleep(_SETTLE_S)
            screen, engine = psutil.Process(terminal.pid), psutil.Process(own_sessions()[0].pid)
            percents = cpu_percents([screen, engine], windows, window_s)
            keeper = engine.parent()
            assert keeper is not None
            processes = {"screen": screen, "engine": engine, "its keeper": keeper}
            memory = {name: memory_mb(process) for name, process in processes.items()}
    proportional, resident = (sum(sizes) for sizes in zip(*memory.values(), strict=True))
    plain, most = repaint_ms(SIZE) / 10, BOUND_MEMORY_GPU if has_gpu() else BOUND_MEMORY
    what = "one GPU" if has_gpu() else "no GPU but the CPU pool"
    both, of_screen, of_engine = [sum(each) for each in percents], *zip(*percents, strict=True)
    return [
        Row(
            f"CPU of screen and engine together at 1 Hz, {what}, one script read 10 times a second, 160×48",
            f"{BOUND_CPU:g}× a repaint a second",
            against(both, plain, 2, "%", f"Textual repainting {SIZE[0]}×{SIZE[1]} plain cells a second"),
            f"{windows} windows of {window_s:.0f} s; screen {spread(of_screen, 1)}, engine {spread(of_engine, 1)}",
            statistics.median(both) <= BOUND_CPU * plain,
        ),
        Row(
            "memory of the two and the engine's keeper together",
            f"{most:g}× importing Textual",
            against([proportional], textual_mb(), 0, "MB", "a Python with textual.app")
            + f"; at most {resident:.0f} MB",
            f"after {_SETTLE_S + windows * window_s:.0f} s, PSS, what others map too counted in part; at most: "
            "resident sets added, what they share counted again; "
            + ", ".join(f"{name} {pss:.0f} (resident {rss:.0f})" for name, (pss, rss) in memory.items()),
            proportional <= most * textual_mb(),
        ),
    ]
