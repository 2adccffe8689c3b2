"""One frame of the process table: 16 GPUs, 500 processes, 200×60. At most 5 ms.

Run it as ``python -m tests.bench.bench_frame_table``.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Callable

from textual.app import App, ComposeResult

from tests.ui.process_data import crowd
from tfmemtop.ui.process_table import ProcessTable

BUDGET_MS = 5.0
SIZE = (200, 60)


class _Screen(App[None]):
    def compose(self) -> ComposeResult:
        yield ProcessTable()


def _median_ms(work: Callable[[], object], rounds: int = 50) -> float:
    taken = []
    for _ in range(rounds):
        begun = time.thread_time()
        work()
        taken.append((time.thread_time() - begun) * 1e3)
    return statistics.median(taken)


async def measure() -> dict[str, float]:
    """Median milliseconds of CPU that a frame takes, in each manner of looking."""
    state = crowd(500, 16)
    app = _Screen()
    async with app.run_test(size=SIZE) as pilot:
        table = app.query_one(ProcessTable)
        await pilot.pause()
        frames = {"as it starts": _median_ms(lambda: table.show(state))}
        table.action_edge(1)
        frames["at the end"] = _median_ms(lambda: table.show(state))
        table.as_tree = True
        frames["as a tree"] = _median_ms(lambda: table.show(state))
        table.as_tree, table.wanted = False, "ada"
        frames["filtered"] = _median_ms(lambda: table.show(state))
        # Every line anew, as after a resize.
        table.wanted = ""

        def anew() -> None:
            table._drawn = (0, 0)
            table.show(state)

        frames["every line anew"] = _median_ms(anew)
    return frames


def main() -> int:
    frames = asyncio.run(measure())
    for name, taken in frames.items():
        print(f"process table, 500 processes, {name:<16} {taken:6.2f} ms  (at most {BUDGET_MS} ms)")
    return int(max(frames.values()) > BUDGET_MS)


if __name__ == "__main__":
    sys.exit(main())
