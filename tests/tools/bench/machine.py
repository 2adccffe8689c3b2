"""Synthetic machines: the events that an engine would send of one, and a long session.

The latter is made from a part of a real one on an H200: one GPU, one script, 10 readings and a map a second.
"""

import math
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from tfmemtop import events
from tfmemtop.events.recording import read
from tfmemtop.settings import Settings

DAY_S = 86_400
_REAL = Path(__file__).parents[2] / "recordings" / "h200-runs.jsonl"
RUN = 2
"""The run of that recording that is used: a Keras training with growth on. Both of its pools have maps."""


def session(seconds: float) -> Iterator[events.Event]:
    """Yield the session's beginning, then its steady part over and over, and its end after *seconds*.

    Counters and times go on from one round to the next. Sizes repeat in each round. This does not make the recording
    smaller: a round has 300 kB, and gzip finds repetitions only within 32 kB.
    """
    real = list(read(_REAL).events())
    last = next(event.t for event in real if isinstance(event, events.Run) and event.run == RUN)
    hello = next(event.t for event in real if isinstance(event, events.Functions) and event.t > last)
    end = next(event.t for event in real if isinstance(event, events.RunEnd) and event.run == RUN)
    for event in real:
        if isinstance(event, (events.Session, events.Device, events.Terminal)):
            yield replace(event, t=0.0)
    first = replace(real[0], t=0.0)
    assert isinstance(first, events.Session)
    yield from (replace(event, t=event.t - last) for event in real if last <= event.t < hello)
    left_out = (events.Census, events.PoolGrowth, events.Output, events.Environment)  # once only, or not with `record`
    stretch = [event for event in real if hello <= event.t < end - 3 and not isinstance(event, left_out)]
    span, round_ = end - 3 - hello, 0
    calls = max(sum(each.calls for each in event.functions) for event in stretch if isinstance(event, events.Functions))
    made = _made(stretch)
    while True:
        at = hello - last + round_ * span
        for event in stretch:
            t = round(event.t - hello + at, 6)
            if t > seconds:
                yield events.RunEnd(t=t, run=RUN, exit_code=0, signal=None)
                return
            yield _again(event, t, round_, made, calls)
        round_ += 1


def _made(stretch: list[events.Event]) -> int:
    counts = [event.allocations or 0 for event in stretch if isinstance(event, events.Allocator)]
    return max(counts)


def _again(event: events.Event, t: float, round_: int, made: int, calls: int) -> events.Event:
    match event:
        case events.Allocator(allocations=int(count)):
            return replace(event, t=t, allocations=count + made * round_)
        case events.Functions():
            grown = [replace(each, calls=each.calls + calls * round_) for each in event.functions]
            return replace(event, t=t, functions=grown)
        case _:
            return replace(event, t=t)


MIB, GIB = 1 << 20, 1 << 30
SCRIPT = 1000
"""The pid of the run's first process."""

_TOTAL, _RESERVED = 140 * GIB, 615 * MIB


class Machine:
    """A machine with *gpus* GPUs, and *processes* processes spread evenly over them.

    The run has a hooked process on each GPU.
    """

    def __init__(self, gpus: int, processes: int) -> None:
        self.gpus = gpus
        self.pids = list(range(SCRIPT, SCRIPT + processes))
        self.hooked = self.pids[:gpus]

    def beginning(self) -> Iterator[events.Event]:
        """Yield all events up to the first readings."""
        command = ["python", "train.py", "--epochs", "100"]
        yield events.Session(
            t=0.0, format=events.FORMAT, version="0", id="bench", started=1.7e9, host="box", user="ada",
            host_memory=2048 * GIB, cores=128, interval_s=0.1, command=command,
        )  # fmt: skip
        yield events.Terminal(t=0.0, columns=100, rows=20)
        yield events.Run(t=0.1, run=1, pid=SCRIPT, argv=command, cwd="/home/ada", settings=Settings())
        for index in range(self.gpus):
            yield events.Device(
                t=0.2, index=index, uuid=f"GPU-{index}", name="NVIDIA H200", total=_TOTAL, reserved=_RESERVED
            )
        for pid in self.pids:
            of_run = pid in self.hooked
            words = [*command, f"--rank={pid - SCRIPT}"] if of_run else ["python", f"serve_{pid}.py", "--port", "80"]
            yield events.Process(
                t=0.3, pid=pid, ppid=SCRIPT if of_run and pid != SCRIPT else 1, user="ada" if of_run else "grace",
                command=words, started=1.7e9 - pid, run=1 if of_run else None,
            )  # fmt: skip
        for gpu, pid in enumerate(self.hooked):
            yield events.Hook(
                t=0.4, pid=pid, ppid=1, argv=["train.py"], python="3.12.3", executable="python", tensorflow="2.21.0"
            )
            yield events.Effective(
                t=0.4, pid=pid, device="GPU:0", physical=0, uuid=f"GPU-{gpu}", growth=True, limit=None, allocator="bfc"
            )

    def allocators(self, t: float) -> Iterator[events.Allocator]:
        """Yield a reading of each hooked process's pool."""
        for index, pid in enumerate(self.hooked):
            in_use = int((20 + 15 * math.sin(t / 7 + index)) * GIB)
            yield events.Allocator(
                t=t, pid=pid, device="GPU:0", allocator=f"GPU_{index}_bfc", in_use=in_use, peak=35 * GIB,
                pool=40 * GIB, limit=100 * GIB,
            )  # fmt: skip

    def readings(self, t: float) -> Iterator[events.Event]:
        """Yield what is read once a second: every GPU, then the processes."""
        for index in range(self.gpus):
            used, shares = 0, []
            for place in range(index, len(self.pids), self.gpus):
                held = 42 * GIB if place < self.gpus else int((1.5 + math.sin(t / 5 + place)) * GIB)
                shares.append(events.DeviceProcess(self.pids[place], held, int(t + place) % 100, 20))
                used += held
            yield events.DeviceReading(
                t=t, index=index, used=used, free=_TOTAL - _RESERVED - used, utilisation=int(50 + 40 * math.sin(t)),
                bandwidth=22, power_w=400 + 100 * math.sin(t + index), temperature_c=int(50 + 10 * math.sin(t / 9)),
                processes=shares,
            )  # fmt: skip
        yield events.ProcessReadings(
            t=t,
            processes=[
                events.ProcessReading(pid, 50 + 40 * math.sin(t + pid), int((4 + math.sin(t / 3 + pid)) * GIB))
                for pid in self.pids
            ],
            host_used=int((500 + 20 * math.sin(t)) * GIB),
            host_cpu=40 + 10 * math.sin(t),
        )
