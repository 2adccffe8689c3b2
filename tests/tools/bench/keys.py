"""How soon the screen reacts to a key while the script prints without pause."""

import statistics
import sys
import time

from tests.tools.bench.table import Row
from tests.tools.bench.terminal import TFMEMTOP, Terminal, private_sessions
from tests.tools.bench.yardstick import python_s

BOUND = 15.0
"""As a multiple of ``python -c pass``, for the slowest key: 0.2 s on a machine of today."""
_SIZE = (100, 30)  # help covers the output's title, which is drawn again when help is closed
_WARM_UP_S = 3.0


def _prints(text: str) -> list[str]:
    return [sys.executable, "-c", f"import os\nwhile True: os.write(1, {text.encode()!r})"]


QUIET = ["sleep", "1000"]
FLOODS = {
    "yes": ["yes"],
    "print(1)": [sys.executable, "-c", "while True: print(1)"],
    "alignments": _prints("\x1b#8" * 1000),
    "repeats": _prints("漢\x1b[9999b" * 1000),
    "scrolling": _prints("\x1b[9999S" * 1000),
    "colours": _prints("\x1b[38;2;1;2;3;48;5;100mx" * 1000),
    "a title without end": _prints("\x1b]0;" + "x" * 100_000),
}


def _answers_s(command: list[str], presses: int) -> list[float]:
    """Return the seconds from each press of ``?`` until help is on the screen."""
    taken = []
    with private_sessions(), Terminal([*TFMEMTOP, "--", *command], *_SIZE) as terminal:
        terminal.wait_for("Output")
        time.sleep(_WARM_UP_S)  # time in which buffers can fill up
        for _ in range(presses):
            taken.append(terminal.answer("?", "keys and words"))
            terminal.answer("\x1b", "Output")
        terminal.answer("q", "still running")
        terminal.press("s")
        terminal.wait_closed(30)
    return taken


def measure(quick: bool) -> list[Row]:
    """Measure with one flood after the other."""
    answers = {name: _answers_s(command, 5 if quick else 20) for name, command in FLOODS.items()}
    python = python_s()
    quiet = _answers_s(QUIET, 5 if quick else 20)
    worst = {name: max(taken) for name, taken in answers.items()}
    slowest = max(worst, key=lambda name: worst[name])
    every = [seconds for taken in answers.values() for seconds in taken]
    return [
        Row(
            "a key while the script prints without pause",
            f"{BOUND:g}× `python -c pass`, at worst",
            f"{statistics.median(every) / python:.1f}×, at worst {worst[slowest] / python:.1f}×: "
            f"{statistics.median(every):.2f} s, at worst {worst[slowest]:.2f} s ({slowest})",
            f"`?` until help is drawn, {len(every)} times under: {', '.join(FLOODS)}; "
            f"where nothing is printed {statistics.median(quiet):.2f} s, at worst {max(quiet):.2f} s",
            worst[slowest] <= BOUND * python,
        )
    ]
