"""When the memory of a run is free again, judged by its processes, or by what each GPU held before the run."""

from msgspec.structs import replace

from tests import streams as s
from tests.streams import GIB, MIB
from tfmemtop.engine.process.ending import Footprint
from tfmemtop.events import DeviceReading, Leftover, SharesMissing, StillHeld

UNTOLD = SharesMissing.NOT_TOLD


def reading(used: int, *pids: int, missing: SharesMissing | None = None) -> DeviceReading:
    return replace(s.device_reading(0.0, dict.fromkeys(pids, GIB), missing=missing), used=used)


def after(*events: object) -> Footprint:
    footprint = Footprint()
    for event in events:
        footprint.take(event)  # type: ignore[arg-type]
    return footprint


def test_processes_of_the_run_that_were_on_a_gpu_are_its_own() -> None:
    told = after(s.run(), s.process(0.2, 7), s.process(0.2, 8, run=None), reading(GIB, 7, 8), s.alive(0.3, 7, 8))
    assert told.pids == {7}
    told.take(s.alive(0.4))
    assert told.pids == {7}  # the driver may list the process for longer than the kernel does
    assert told.held([reading(GIB, 7)], {7}) == StillHeld(Leftover.LISTED, 0, GIB, [7])
    assert not told.held([reading(GIB, 8)], {7})
    told.take(s.run(number=2))
    assert not told.pids


def test_where_no_process_is_named_the_gpu_is_to_hold_no_more_than_before() -> None:
    told = after(reading(3 * GIB), reading(GIB, missing=UNTOLD), s.run(), reading(5 * GIB))
    assert told.held([reading(5 * GIB, missing=UNTOLD)], set()) == StillHeld(Leftover.MORE_USED, 0, 4 * GIB)
    assert not told.held([reading(GIB + 60 * MIB, missing=UNTOLD)], set())
    assert not told.held([reading(5 * GIB)], set())  # all processes are named, and none belongs to the run
