"""A step as XProf sees it, and as tfmemtop does.

``xprof/step.json`` has the allocation events of one training step of a small CNN, which ``tf.profiler`` of TensorFlow
2.21 recorded on its BFC allocator for the CPU, and what the memory profile of XProf 2.24.2 says of the same events: the
peak, the bytes that were in use before, and the allocations that are active at the peak.
"""

import json
from collections import Counter
from pathlib import Path

from tfmemtop.engine.sources.tensorflow_numbers import region_name
from tfmemtop.engine.sources.window_events import Known, events_of
from tfmemtop.engine.sources.window_file import Held, PoolStart, Record, WindowFile
from tfmemtop.events import Closed, Holders, Opened, Window
from tfmemtop.state.step_course import unpacked

RECORDED = json.loads((Path(__file__).parent / "xprof" / "step.json").read_text())
REGIONS = {region_name(number): number for number in range(5)}
AT_NS = 1_800_000_000_000_000_000


def window_of(events: list[list[object]]) -> Holders:
    """The events as the probe would have put them into a file."""
    strings = [""]
    records: list[Record] = []
    lying: dict[int, Held] = {}
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
            lying[address] = Held(address, -size, requested, 0)
        numbers = strings.index(str(operation)), strings.index(str(shape))
        records.append((AT_NS + at, address, requested, size, in_use, 1, *numbers, 0, REGIONS[str(region)], dtype))
    before = int(records[0][4]) - int(records[0][3])
    rest = before - sum(chunk.size for chunk in lying.values())
    chunks = [*lying.values(), Held(64, rest, rest, 0)]  # what the step does not touch
    file = WindowFile(AT_NS - 1, 0, [PoolStart(before, before, AT_NS - 1)], chunks, strings, records)
    window = Window(
        pid=100, window=1, opened=Opened.ASKED, closed=Closed.STEP, last=True, bytes=0, pools=["CPU:0"], function="step"
    )
    (event,) = events_of(window, file, Known(), lambda now: now, lambda: None)
    assert isinstance(event, Holders)
    return event


def test_the_same_peak_and_the_same_holders() -> None:
    event, told = window_of(RECORDED["events"]), RECORDED["xprof"]
    course = unpacked(event)
    # The step reaches its peak three times. XProf shows the last of them, tfmemtop the first.
    peaks = [number for number, row in enumerate(RECORDED["events"]) if row[4] == told["peak"]]
    assert len(peaks) == 3 and event.peak_at == peaks[0]
    assert event.peak == told["peak"] and event.unknown == event.lost == 0
    ours: Counter[tuple[str, str, int, int]] = Counter()
    before = 0
    for place in course.alive(peaks[-1]):
        kind = course.kinds[course.holdings[place]]
        if course.begins[place] < 0:
            before += kind.size
        else:
            shape = "" if kind.shape is None else f"[{','.join(map(str, kind.shape))}]"
            ours[course.name(kind).removeprefix("StatefulPartitionedCall/"), shape, kind.size, kind.requested] += 1
    theirs: Counter[tuple[str, str, int, int]] = Counter()
    for operation, shape, size, requested, count in told["active"]:
        theirs[operation, shape, size, requested] += count
    assert before == told["before"]
    largest = sorted(theirs, key=lambda one: -one[2] * theirs[one])[:10]
    assert [ours[one] for one in largest] == [theirs[one] for one in largest]
    assert ours == theirs
