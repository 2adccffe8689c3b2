"""One frame of the devices' panel, 200×60, with histories that are full.

Run it as ``python -m tests.bench.bench_frame_devices``.
"""

import statistics
import sys
import time

from tests.ui.synthetic_devices import GIB, begun, read, start_run
from tfmemtop.state import State
from tfmemtop.ui.device_panel import DevicesPanel
from tfmemtop.ui.graph import SPANS, Scale

WIDTH, HEIGHT = 200, 60
BUDGETS_MS = {1: 3.0, 8: 6.0, 16: 6.0}
"""By the number of GPUs; 8 are the most that still get a graph each."""


def _session(gpus: int, seconds: int, every_s: int) -> State:
    state = begun(gpus)
    start_run(state, 1, 0.0)
    for second in range(0, seconds, every_s):
        _tick(state, float(second), gpus)
    return state


def _tick(state: State, t: float, gpus: int) -> None:
    use = int(t * 37 % 40 + 5)
    for gpu in range(gpus):
        read(state, t, gpu, in_use=use * GIB, pool=60 * GIB, others=int(t % 30) * GIB, limit=80 * GIB)


def _frames(state: State, gpus: int, span: int, scale: Scale) -> tuple[float, float]:
    """Milliseconds of CPU: the median frame as time goes on, and the first frame, everything anew."""
    panel = DevicesPanel()
    panel.scale, panel.state = scale, state
    panel.cycle_span(span - panel.span)
    taken = []
    t = state.now
    for _ in range(60):
        t += 1.0
        _tick(state, t, gpus)
        begun_s = time.thread_time()
        panel.build(WIDTH, HEIGHT)
        taken.append((time.thread_time() - begun_s) * 1e3)
    return statistics.median(taken[1:]), taken[0]


def main() -> int:
    over = False
    for gpus, budget in BUDGETS_MS.items():
        for age, seconds, every_s in (("5 min", 300, 1), ("24 h", 86_400, 60)):
            state = _session(gpus, seconds, every_s)
            for span in (1, 5):
                for scale in Scale:
                    frame, first = _frames(state, gpus, span, scale)
                    over |= frame > budget
                    print(
                        f"devices, {gpus:2} GPU, after {age:5}, spanning {SPANS[span][1]:5}, {scale.value:14}"
                        f" {frame:5.2f} ms  (first {first:6.1f} ms, at most {budget} ms)"
                    )
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
