"""How much a script that prints without pause is slowed down: under tfmemtop compared with under ``script``."""

import shlex
import statistics
import sys
import time
from pathlib import Path

from tests.tools.bench.table import Row, spread
from tests.tools.bench.terminal import TFMEMTOP, Terminal, private_sessions

SCRIPT = Path(__file__).parent / "scripts" / "flood.py"
BOUND = 1.2


def _taken_s(megabytes: int, watched: bool) -> tuple[float, float]:
    """Return the seconds from the start of the whole to the script's end, and how many of these the printing took."""
    with private_sessions() as folder:
        stamp = folder / "ended"
        command = [sys.executable, str(SCRIPT), str(megabytes), str(stamp)]
        around = [*TFMEMTOP, "--", *command] if watched else ["script", "-qc", shlex.join(command), "/dev/null"]
        begun = time.time()
        with Terminal(around, 160, 48) as terminal:
            if watched:
                terminal.wait_for("exit code 0", 300)
                terminal.press("q")
            terminal.wait_closed(300)
        began, ended = map(float, stamp.read_text().split())
        return ended - begun, ended - began


def measure(quick: bool) -> list[Row]:
    """Measure pairs, one after the other."""
    megabytes, pairs = (20, 3) if quick else (200, 3)
    ratios, printing, seconds = [], [], []
    for number in range(pairs):
        taken = {watched: _taken_s(megabytes, watched) for watched in ((False, True), (True, False))[number % 2]}
        ratios.append(taken[True][0] / taken[False][0])
        printing.append(taken[True][1] / taken[False][1])
        seconds.append(taken[False][0])
    return [
        Row(
            f"a script that prints {megabytes} MB, under tfmemtop against `script -qc`",
            f"{BOUND}×",
            f"{spread(ratios, 2)}×",
            f"{pairs} pairs in turning order, from the start of either to the script's end; the printing alone "
            f"{spread(printing, 2)}×; under script {statistics.median(seconds):.1f} s",
            statistics.median(ratios) <= BOUND,
        )
    ]
