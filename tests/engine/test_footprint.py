"""When the memory of a run is free again, judged by its processes, or by what each GPU held before the run."""

from typing import Any

from tfmemtop.engine.process.ending import Footprint
from tfmemtop.events import (
    DeviceProcess,
    DeviceReading,
    Leftover,
    Process,
    ProcessReading,
    ProcessReadings,
    Run,
    SharesMissing,
    StillHeld,
)
from tfmemtop.settings import Settings

MIB = 1 << 20
GIB = 1 << 30
UNTOLD = SharesMissing.NOT_TOLD


def reading(used: int, *pids: int, missing: SharesMissing | None = None) -> DeviceReading:
    processes = [DeviceProcess(pid=pid, used=GIB) for pid in pids]
    unknown: dict[str, Any] = dict.fromkeys(("free", "utilisation", "bandwidth", "power_w", "temperature_c"))
    return DeviceReading(t=0.0, index=0, used=used, processes=processes, processes_missing=missing, **unknown)


def process(pid: int, run: int | None) -> Process:
    return Process(t=0.0, pid=pid, ppid=1, user="me", command=["python"], started=0.0, run=run)


def swept(*pids: int) -> ProcessReadings:
    return ProcessReadings(t=0.0, processes=[ProcessReading(pid, 0.0, 1) for pid in pids])


def started(number: int = 1) -> Run:
    return Run(t=0.0, run=number, pid=7, argv=["x"], cwd="/", settings=Settings())


def after(*events: object) -> Footprint:
    footprint = Footprint()
    for event in events:
        footprint.take(event)  # type: ignore[arg-type]
    return footprint


def test_processes_of_the_run_that_were_on_a_gpu_are_its_own() -> None:
    told = after(started(), process(7, 1), process(8, None), reading(GIB, 7, 8), swept(7, 8))
    assert told.pids == {7}
    told.take(swept())
    assert told.pids == {7}  # the driver may list the process for longer than the kernel does
    assert told.held([reading(GIB, 7)], {7}) == StillHeld(Leftover.LISTED, 0, GIB, [7])
    assert not told.held([reading(GIB, 8)], {7})
    told.take(started(2))
    assert not told.pids


def test_where_no_process_is_named_the_gpu_is_to_hold_no_more_than_before() -> None:
    told = after(reading(3 * GIB), reading(GIB, missing=UNTOLD), started(), reading(5 * GIB))
    assert told.held([reading(5 * GIB, missing=UNTOLD)], set()) == StillHeld(Leftover.MORE_USED, 0, 4 * GIB)
    assert not told.held([reading(GIB + 60 * MIB, missing=UNTOLD)], set())
    assert not told.held([reading(5 * GIB)], set())  # all processes are named, and none belongs to the run
