"""What a window of allocations costs the steps within it, and those after it: all in one process, in turns.

A round is a block of steps before a window, one within, and one after. So each ratio is of neighbouring tenths of a
second of the same process, whose memory stays in the same places. Two more blocks in each round, with a pause between
them and no window, show how much of a ratio is random variation.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from tests.tools.bench.table import Row, has_gpu, likely
from tfmemtop.probe.build import build

SCRIPT = Path(__file__).parent / "scripts" / "windows.py"
WITHIN, OUTSIDE = 1.5, 1.002

_POOL = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "2048"}
_KINDS = {"keras": "a Keras training step", "eager": "an eager loop of small operations"}


def measure(quick: bool) -> list[Row]:
    """Measure the ratios within each round.

    These are: within a window to the mean of before and after, after to before, and after to before without a window.
    """
    spec = find_spec("tensorflow")
    assert spec is not None
    built = build(Path(str(spec.origin)).parent, version("tensorflow"))
    if built.state != "built":
        raise RuntimeError(built.unbuilt)
    environment = {**os.environ, **({} if has_gpu() else _POOL), "TF_CPP_MIN_LOG_LEVEL": "2"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), built.path, str(built.checksum), folder, "20" if quick else "200"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    rows = []
    for line in done.stdout.splitlines():
        found = json.loads(line)
        rounds, what = found["rounds"], _KINDS[found["kind"]]
        within = [2 * inside / (before + after) for before, inside, after, *_ in rounds]
        outside = [after / before for before, _, after, *_ in rounds]
        chance = [again / alone for *_, alone, again in rounds]
        step_ms = statistics.median(before for before, *_ in rounds) * 1e3
        how = f"{len(rounds)} rounds of neighbouring blocks of 0.15 s"
        rows += [
            Row(
                f"{what} ({step_ms:.1f} ms, {found['allocations']:.0f} events of allocators) within a window"
                ", against outside",
                f"{WITHIN}×",
                f"{likely(within, 3)}×",
                f"{how}; the window itself says ~{found['cost_s'] * 1e3:.2f} ms a step",
                statistics.median(within) <= WITHIN,
            ),
            Row(
                f"{what} after a window, against before",
                f"{OUTSIDE}×",
                f"{likely(outside, 3)}×",
                f"{how}; chance, without a window: {likely(chance, 3)}×",
                statistics.median(outside) <= OUTSIDE,
            ),
        ]
    return rows
