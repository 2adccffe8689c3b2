"""States folded from made-up events of a session, for tests and measurements of the devices' panel."""

import math

from tfmemtop import events
from tfmemtop.settings import Settings
from tfmemtop.state import State, apply

MIB, GIB = 1 << 20, 1 << 30


def begun(gpus: int, *, total: int | None = 140 * GIB + 412 * MIB, name: str = "NVIDIA H200") -> State:
    """Return the state of a session on a machine with *gpus* GPUs, before the first reading. *total* is bytes a GPU."""
    state = State()
    apply(
        state,
        events.Session(
            t=0.0, format=1, version="1", id="s", started=1.7e9, host="h", user="u", host_memory=256 * GIB, cores=64,
            interval_s=0.1, command=["python", "train.py"],
        ),
    )  # fmt: skip
    for index in range(gpus):
        apply(state, events.Device(t=0.0, index=index, uuid=f"u{index}", name=name, total=total, reserved=615 * MIB))
    return state


def start_run(state: State, run: int, t: float, pid: int = 100) -> None:
    """Let the script start and import TensorFlow, with a pool of its own on every GPU."""
    argv = ["python", "train.py"]
    apply(state, events.Run(t=t, run=run, pid=pid, argv=argv, cwd="/", settings=Settings()))
    apply(state, events.Process(t=t, pid=pid, ppid=1, user="u", command=argv, started=1.7e9 + t, run=run))
    apply(state, events.Hook(t=t, pid=pid, ppid=1, argv=argv, python="3.12", executable="python"))
    for index in state.devices:
        apply(
            state,
            events.Effective(
                t=t, pid=pid, device=f"GPU:{index}", physical=index, uuid=f"u{index}", growth=True, limit=None,
                allocator="bfc",
            ),
        )  # fmt: skip


def read(
    state: State,
    t: float,
    gpu: int,
    *,
    in_use: int | None,
    pool: int | None,
    rest: int = 608 * MIB,
    others: int = GIB,
    limit: int | None = 4 * GIB,
    pid: int = 100,
) -> None:
    """Add one reading of one GPU and, unless *in_use* is ``None``, of the run's allocator there. Sizes are bytes."""
    total = state.devices[gpu].info.total
    if in_use is not None:
        apply(
            state,
            events.Allocator(
                t=t, pid=pid, device=f"GPU:{gpu}", allocator=f"GPU_{gpu}_bfc", in_use=in_use, peak=in_use, pool=pool,
                limit=limit,
            ),
        )  # fmt: skip
    mine = (pool or in_use or 0) + rest if in_use is not None else 0
    used = mine + others
    apply(
        state,
        events.DeviceReading(
            t=t, index=gpu, used=used, free=None if total is None else max(0, total - 615 * MIB - used),
            utilisation=(37 * gpu + 45) % 101, bandwidth=22, power_w=269.0 + gpu, temperature_c=42 + gpu,
            processes=[events.DeviceProcess(pid, mine)] if mine else [],
        ),
    )  # fmt: skip


def trained(gpus: int = 1, seconds: int = 280, scale: int = 1, limit: int | None = 4 * GIB) -> State:
    """Return the state after a session of *seconds*: a run, its end, and another run with more in use.

    The memory in use goes up and down while the pool grows. The pool grows to *scale* GiB at most, and in the second
    run to 1.6 times as much.
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
        pool = int(scale * GIB * max(0.1, grown))
        for gpu in range(gpus):
            in_use = None if ended else int(pool * swing)
            read(
                state, second + gpu / 100, gpu, in_use=in_use, pool=pool, limit=limit, pid=200 if second_run else 100,
                others=GIB * (1 + second // 100),
            )  # fmt: skip
    return state
