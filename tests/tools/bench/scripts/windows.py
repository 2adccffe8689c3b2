"""Steps in and outside windows of allocations, in turns: ``python windows.py LIBRARY CHECKSUM FOLDER ROUNDS``.

Prints a line of JSON for each kind of step. It has the rounds, the events of allocators in a step, and the cost of a
step that the window itself reports. A round has the seconds of a step before a window, within it, and after it, and
before and after a pause in which there was no window.
"""

import json
import sys
import time
from pathlib import Path

import tensorflow as tf
from steps import eager_step, repeat, training_step  # this file is beside the script

from tfmemtop.agent.native import Native
from tfmemtop.agent.native_windows import BY_TIME, Limits, NativeWindows
from tfmemtop.agent.trust import CPU, GPU

BLOCK_S = 0.15
LIMITS = Limits(steps=0, seconds=60.0, allocations=10**7, events=10**8, size=1 << 30, pause_s=0.001)


def main() -> None:
    """Measure both kinds of step."""
    library, checksum, folder, rounds = sys.argv[1:]
    windows = NativeWindows(Native(library, int(checksum)).library)
    place = (GPU, 0) if tf.config.list_physical_devices("GPU") else (CPU, 0)
    # Not compiled by XLA: some 100 allocations a step.
    for kind, step in {"keras": training_step(on_gpu=False, jit_compile=False), "eager": eager_step()}.items():
        for _ in range(5):
            step()
        taken, allocations, cost_s, closing_s = [], 0.0, 0.0, 0.0
        for number in range(int(rounds)):
            alone, _ = repeat(step, BLOCK_S)
            time.sleep(closing_s)
            alone_again, _ = repeat(step, BLOCK_S)
            path = Path(folder, f"{kind}.{number}.window")
            before, _ = repeat(step, BLOCK_S)
            if not windows.start(str(path), [place], "", LIMITS):
                raise RuntimeError("no window could be opened")
            within, steps = repeat(step, BLOCK_S)
            begun = time.perf_counter()
            windows.end(BY_TIME)
            while (found := windows.progress()) is not None and found.running:
                time.sleep(0.001)
            closing_s = time.perf_counter() - begun
            after, _ = repeat(step, BLOCK_S)
            path.unlink()
            assert found is not None
            assert found.allocations
            taken.append((before, within, after, alone, alone_again))
            allocations, cost_s = found.allocations / steps, found.cost_s / steps
        print(json.dumps({"kind": kind, "rounds": taken, "allocations": allocations, "cost_s": cost_s}), flush=True)


if __name__ == "__main__":
    main()
