"""States folded from made-up events of a session, for tests of the devices' panel."""

import math

from msgspec.structs import replace

from tests import streams as s
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.state import State, apply


def begun(gpus: int, *, total: int | None = 140 * GIB + 412 * MIB) -> State:
    """Return the state of a session on a machine with *gpus* GPUs, before the first reading. *total* is bytes a GPU."""
    return s.fold([s.session(), *(replace(s.device(index), total=total) for index in range(gpus))])


def start_run(state: State, run: int, t: float, pid: int = 100) -> None:
    """Let the script start and import TensorFlow, with a pool of its own on every GPU."""
    devices = [s.effective(t, pid, f"GPU:{index}", f"GPU-{index}") for index in state.devices]
    for event in (s.run(t, run, pid), s.process(t, pid, run), s.hook(t, pid), *devices):
        apply(state, event)


def read(
    state: State,
    t: float,
    gpu: int,
    *,
    in_use: int | None,
    pool: int | None,
    others: int = GIB,
    limit: int | None = 4 * GIB,
    pid: int = 100,
) -> None:
    """Add one reading of one GPU and, unless *in_use* is ``None``, of the run's allocator there. Sizes are bytes."""
    if in_use is not None:
        apply(state, replace(s.allocator(t, pid, in_use, pool=pool, name=f"GPU:{gpu}"), limit=limit))
    mine = (pool or in_use or 0) + 608 * MIB if in_use is not None else 0
    reading = s.device_reading(t, {pid: mine} if mine else {}, gpu)
    free = None if state.devices[gpu].info.total is None else reading.free
    apply(state, replace(reading, used=mine + others, free=free, temperature_c=42 + gpu))


def trained(gpus: int = 1, seconds: int = 280) -> State:
    """Return the state after a session of *seconds*: a run, its end, and another run with more in use.

    The memory in use goes up and down while the pool grows: to 1 GiB at most, and in the second run to 1.6 GiB.
    """
    state = begun(gpus)
    start_run(state, 1, 8.0)
    for second in range(8, seconds):
        second_run = second > seconds * 2 // 3
        if second == seconds * 2 // 3:
            apply(state, events.HookEnd(t=float(second), pid=100, reason=events.HookEnding.EXIT))
            apply(state, events.RunEnd(t=float(second), run=1, exit_code=0, signal=None))
        if second == seconds * 2 // 3 + 6:
            start_run(state, 2, float(second), pid=200)
        ended = seconds * 2 // 3 <= second < seconds * 2 // 3 + 6
        grown = min(1.0, (second % (seconds * 2 // 3)) / 60) * (1.6 if second_run else 1.0)
        swing = 0.5 + 0.3 * math.sin(second / 9) + (0.2 if second % 37 == 0 else 0)
        pool = int(GIB * max(0.1, grown))
        pid, others = 200 if second_run else 100, GIB * (1 + second // 100)
        for gpu in range(gpus):
            read(
                state, second + gpu / 100, gpu, in_use=None if ended else int(pool * swing), pool=pool, pid=pid,
                others=others,
            )  # fmt: skip
    return state
