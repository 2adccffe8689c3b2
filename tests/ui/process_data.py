"""Machines with processes, some with unusual names and figures, folded from the events that an engine would send."""

import random

from tests.streams import GIB, MIB, allocator, device, device_reading, effective, fold, hook, run, session
from tfmemtop import events
from tfmemtop.state import State

COMMANDS = (
    "python train.py --epochs 100",
    "/usr/bin/python3 -m 漢字.train --名前=x",
    "python -c evil\x1b[31m\nprint(1)\x9b2J\u202egnp.exe",
    "/opt/very/long/path/to/python3.12 /home/ada/project/train_the_thing.py --batch-size=256 --learning-rate 0.001",
    "",
    "e\u0301 👩\u200d💻 ❤\ufe0f \udce9".encode(errors="replace").decode(),
)
USERS = ("ada", "root", "grace.hopper", "名無しさんです", "")


def seen(
    pid: int, command: str = "python other.py", user: str = "ada", ppid: int = 1, run: int | None = None
) -> events.Process:
    return events.Process(
        t=1.0, pid=pid, ppid=ppid, user=user, command=command.split(" "), started=1_699_999_990.0, run=run
    )


def small() -> State:
    """Return a machine with two GPUs and four processes.

    Process 100 is the run's, has the hook, and holds memory on both GPUs. 300 is its child. 200 and 250 belong to
    other users.
    """
    return fold(
        [
            session(),
            run(pid=100),
            device(0),
            device(1),
            seen(100, "python train.py", run=1),
            seen(200, "python serve.py", user="grace"),
            seen(250, "julia sim.jl", user="bob"),
            seen(300, "python worker.py", ppid=100, run=1),
            device_reading(2.0, index=0, held={100: 2 * GIB, 200: 5 * GIB}),
            device_reading(2.0, index=1, held={100: 512 * MIB, 250: None}),
            events.ProcessReadings(
                t=2.5,
                processes=[
                    events.ProcessReading(100, 99.94, 3 * GIB),
                    events.ProcessReading(200, 0.0, 2 * GIB),
                    events.ProcessReading(250, None, None),
                    events.ProcessReading(300, 1600.0, GIB),
                ],
            ),
            hook(3.0, 100),
            effective(3.0, 100),
            allocator(3.0, 100, 140 * MIB, 300 * MIB, 1026 * MIB),
        ]
    )


def crowd(count: int = 500, gpus: int = 16) -> State:
    """Return a machine with *count* processes, which have every kind of figure, on *gpus* GPUs."""
    chance = random.Random(7)
    stream: list[events.Event] = [session(), run(pid=100), *(device(index) for index in range(gpus))]
    held: list[dict[int, int | None]] = [{} for _ in range(max(1, gpus))]
    pids = [100 + 7 * index for index in range(count)]
    for index, pid in enumerate(pids):
        stream.append(
            events.Process(
                t=1.0,
                pid=pid,
                ppid=chance.choice([1, *pids[:index]]),
                user=chance.choice(USERS),
                command=chance.choice(COMMANDS).split(" "),
                started=1_700_000_000.0 - chance.choice([10, 4000, 900_000, 9e8]),
                run=1 if index < 6 else None,
                hook_absence=events.HookAbsence(events.Absence.ISOLATED) if index == 2 else None,
            )
        )
        held[index % len(held)][pid] = chance.choice([None, 0, 5 * MIB, 1023 * MIB + 10**6, 30 * GIB, -5 * MIB, 2**62])
    stream += [device_reading(2.0, index=index, held=shares) for index, shares in enumerate(held) if gpus]
    for t in (2.0, 5.0):  # at 5 s the second process, which had the hook, has ended
        alive = [pid for pid in pids if t < 5 or pid != pids[1]]
        stream.append(
            events.ProcessReadings(
                t=t,
                processes=[
                    events.ProcessReading(pid, chance.choice([None, 0.0, 99.96, 1234.5, -1.0, 1e12]), 3 * GIB)
                    for pid in alive
                ],
            )
        )
        if t < 5:
            stream += [hook(3.0, pid) for pid in pids[:2]]
            stream += [allocator(3.0, pid, 140 * MIB, 300 * MIB, 1026 * MIB) for pid in pids[:2]]
    return fold(stream)
