"""A step as XProf shows it, and as tfmemtop does.

``xprof/step.json`` contains the allocation events of one training step of a small CNN, which ``tf.profiler`` of
TensorFlow 2.21 recorded on its BFC allocator for the CPU. It also contains what the memory profile of XProf 2.24.2
shows for the same events: the peak, the bytes that were in use before, and the allocations active at the peak.

``xprof/h100.json`` is of an H100: a window of tfmemtop's, and what XProf shows of a step two seconds later, which the
script profiled itself (``tf.profiler.experimental``). Every step of that CNN allocates the same.
"""

import json
from collections import Counter
from pathlib import Path

from tfmemtop.engine.sources.holders_event import region_name
from tfmemtop.engine.sources.window_events import Known, events_of
from tfmemtop.engine.sources.window_file import ChunkInUse, PoolStart, Record, WindowFile
from tfmemtop.events import Closed, Holders, Opened, Window, decode_event
from tfmemtop.state.windows import WindowCourse, unpacked

RECORDED = json.loads((Path(__file__).parent / "xprof" / "step.json").read_text())
REGIONS = {region_name(number): number for number in range(5)}
AT_NS = 1_800_000_000_000_000_000


def window_of(events: list[list[object]]) -> Holders:
    """Return the event for *events*, as if the probe had written them into a file."""
    strings = [""]
    records: list[Record] = []
    lying: dict[int, ChunkInUse] = {}
    made: set[int] = set()
    for at, address, requested, size, in_use, operation, shape, region, dtype in events:
        assert isinstance(at, int) and isinstance(address, int) and isinstance(size, int)
        assert isinstance(requested, int) and isinstance(in_use, int) and isinstance(dtype, int)
        for text in (str(operation), str(shape)):
            if text not in strings:
                strings.append(text)
        if size > 0:
            made.add(address)
        elif address not in made:
            lying[address] = ChunkInUse(address, -size, requested, 0)
        numbers = strings.index(str(operation)), strings.index(str(shape))
        records.append((AT_NS + at, address, requested, size, in_use, 1, *numbers, 0, REGIONS[str(region)], dtype, 0))
    before = int(records[0][4]) - int(records[0][3])
    rest = before - sum(chunk.size for chunk in lying.values())
    chunks = [*lying.values(), ChunkInUse(64, rest, rest, 0)]  # memory that the step does not touch
    file = WindowFile(AT_NS - 1, 0, [PoolStart(before, before, AT_NS - 1)], chunks, strings, records)
    window = Window(
        pid=100, window=1, opened=Opened.ASKED, closed=Closed.STEP, last=True, bytes=0, pools=["CPU:0"], function="step"
    )
    (event,) = events_of(window, file, Known(), lambda now: now, t=9.0)
    assert isinstance(event, Holders)
    return event


Alike = tuple[str, str, int, int]
"""Operation, shape, size of the chunk, and the bytes requested."""


def active(course: WindowCourse, at: int) -> tuple[Counter[Alike], int]:
    """Return the window's allocations that are alive after event *at*, and the bytes in use before the window."""
    ours: Counter[Alike] = Counter()
    before = 0
    for place in course.alive(at):
        kind = course.kinds[course.holdings[place]]
        if course.begins[place] < 0:
            before += kind.size
        else:
            shape = "" if kind.shape is None else f"[{','.join(map(str, kind.shape))}]"
            ours[course.name(kind).removeprefix("StatefulPartitionedCall/"), shape, kind.size, kind.requested] += 1
    return ours, before


def of_xprof(rows: list[tuple[str, str, int, int, int]]) -> Counter[Alike]:
    """Return the same as XProf shows it."""
    theirs: Counter[Alike] = Counter()
    for operation, shape, size, requested, count in rows:
        theirs[operation, shape, size, requested] += count
    return theirs


def largest(found: Counter[Alike]) -> list[Alike]:
    """Return the ten entries that hold most, the largest first."""
    return sorted(found, key=lambda one: (-one[2] * found[one], one))[:10]


def test_the_same_peak_and_the_same_holders() -> None:
    event, told = window_of(RECORDED["events"]), RECORDED["xprof"]
    course = unpacked(event)
    # The step reaches its peak three times. XProf shows the last of them, tfmemtop the first.
    peaks = [number for number, row in enumerate(RECORDED["events"]) if row[4] == told["peak"]]
    assert len(peaks) == 3 and event.peak_at == peaks[0]
    assert event.peak == told["peak"] and event.lost == 0
    (ours, before), theirs = active(course, peaks[-1]), of_xprof(told["active"])
    assert before == told["before"]
    assert [ours[one] for one in largest(theirs)] == [theirs[one] for one in largest(theirs)]
    assert ours == theirs


def test_on_a_gpu_too() -> None:
    read = json.loads((Path(__file__).parent / "xprof" / "h100.json").read_text())
    event = decode_event(json.dumps(read["holders"]).encode())
    assert isinstance(event, Holders) and event.lost == 0
    # A tensor of 1 KiB was in a larger chunk. A constant of 3 MiB existed already when tfmemtop's step began.
    assert 0 <= event.peak - read["xprof"]["peak"] <= 1024
    (ours, _), theirs = active(unpacked(event), event.peak_at), of_xprof(read["xprof"]["active"])
    assert largest(ours) == largest(Counter({one: count for one, count in theirs.items() if one[0] != "_EagerConst"}))
    assert {one[0] for one in (theirs - ours)} == {"_EagerConst", "adam/Mul_31"}
