"""The time that the hook adds to the start of Python, and the time until the first screen."""

import os
import shlex
import statistics
import subprocess
import sys
import time

from tests.starting import PROGRAM
from tests.tools.bench.table import Row, in_turns, likely
from tests.tools.bench.yardstick import against, textual_s
from tests.tools.terminal import Terminal, private_sessions
from tfmemtop.engine.process.launch import ALONE

BOUND_ADDED = 0.3
"""As a multiple of ``python -c pass`` without the hook."""
BOUND_SCREEN = 2.5
"""As a multiple of ``import textual.app`` in a Python of its own."""


def _python_s(environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=environment, check=True)
    return time.perf_counter() - begun


def _hook(pairs: int) -> Row:
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with private_sessions() as folder:
        hooked = {
            **bare,
            "PYTHONPATH": ALONE,
            "TFMEMTOP_SOCKET": str(folder / "hook.sock"),
            "TFMEMTOP_INTERVAL": "0.1",
            "TFMEMTOP_SETTINGS": '{"growth":null,"memory_limit":null}',
        }
        _python_s(bare), _python_s(hooked)  # read the files once, so that they are in memory
        taken = in_turns(pairs, lambda: _python_s(hooked), lambda: _python_s(bare))
    added_ms = [(with_it - without) * 1e3 for with_it, without in taken]
    added, alone = statistics.median(added_ms), 1e3 * statistics.median(without for _, without in taken)
    return Row(
        "`python -c pass` with the hook against without",
        f"+{BOUND_ADDED:g}× the time without",
        f"+{added / alone:.2f}×: +{likely(added_ms, 1)} ms",
        f"{pairs} pairs in turning order, median of differences; without {alone:.0f} ms",
        added <= BOUND_ADDED * alone,
    )


def _first_screen_s() -> tuple[float, float]:
    """Return the seconds from the start of tfmemtop to its first frame, and to the first action of the script."""
    with private_sessions() as folder:
        stamp = folder / "began"
        script = f"date +%s.%N >{shlex.quote(str(stamp))}; : first-screen; exec sleep 60"
        begun = time.time()
        with Terminal([PROGRAM, "--", "sh", "-c", script], size=(120, 40)) as terminal:
            screen_s = terminal.wait_for("sh -c")
            return screen_s, float(stamp.read_text()) - begun


def _first_screen(times: int) -> Row:
    _first_screen_s()
    textual = textual_s()
    screens, scripts = zip(*(_first_screen_s() for _ in range(times)), strict=True)
    before = sum(script < screen for screen, script in zip(screens, scripts, strict=True))
    return Row(
        "first screen after `tfmemtop -- sh -c …` is typed, 120×40, and the script starts before",
        f"{BOUND_SCREEN:g}× importing Textual",
        f"{against(screens, textual, 2, 's', 'importing textual.app')}; "
        f"the script starts at {statistics.median(scripts):.2f} s, "
        f"before the screen in {before} of {times}",
        f"{times} starts in a pty, until the header with the command is drawn; median (lowest to highest)",
        statistics.median(screens) <= BOUND_SCREEN * textual and before == times,
    )


def measure(quick: bool) -> list[Row]:
    """Measure both, warm: one start of each comes before those that count."""
    times = 5 if quick else 20
    return [_hook(40 if quick else 200), _first_screen(times)]
