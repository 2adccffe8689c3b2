"""A pool that runs out is reported while TensorFlow still tries."""

from pathlib import Path

import msgspec
import pytest

from tests.hooked import Forks, Monitor, Script, line, outcome, typed
from tfmemtop.engine.sources.chunk_maps import read_chunks
from tfmemtop.events import Chunks
from tfmemtop.tensorflow_text import parse_exhausted

MIB = 1 << 20

RUNNING_OUT = """
import select, sys, weakref
import tensorflow as tf
if "room" in sys.argv:
    while not select.select([sys.stdin], [], [], 0)[0]:
        for number in range(1000):
            tf.raw_ops.Empty(shape=[32 << 20], dtype=tf.uint8)
    sys.stdin.readline()
pieces = [tf.zeros([1 << 20]) for _ in range(4)]
print("made", flush=True)
sys.stdin.readline()
class Held:
    pass
def fail():
    held = Held()
    try:
        tf.raw_ops.Empty(shape=[128 << 20], dtype=tf.uint8)
    except tf.errors.ResourceExhaustedError as error:
        return weakref.ref(held), error.message
if "fail" in sys.argv:
    reference, message = fail()
    print(reference() is None, message, flush=True)
"""


def exhausted(event: dict[str, object]) -> bool:
    return event["type"] == "chunks" and event["moment"] == "out_of_memory"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "dumps"
    folder.mkdir()
    return folder


def test_the_pool_is_put_down_long_before_the_error(monitor: Monitor, script: Script, forks: Forks, data: Path) -> None:
    process = forks.start(monitor, script(RUNNING_OUT), "room", "fail", TF_CPU_BFC_MEM_LIMIT_IN_MB="64")
    monitor.wait_for(lambda event: sum(bool(one["in_use"] or one["peak"]) for one in monitor.of("allocator")) > 20)
    typed(process)
    assert line(process) == "made"
    assert not [event for event in monitor.events if exhausted(event)], "no wait is seen where there is room"
    monitor.wait_for(lambda event: event["type"] == "allocator" and event["in_use"] >= 16 * MIB)
    typed(process)
    put_down = monitor.wait_for(exhausted)
    where = monitor.of("waiting")[0]
    assert where["operation"] == "Empty" and where["code"].startswith("tf.raw_ops.Empty(")
    assert not monitor.of("out_of_memory")
    pieces, _ = read_chunks(data, msgspec.convert({**put_down, "t": 0.0}, Chunks))
    assert sum(piece.size for piece in pieces if piece.in_use) == put_down["in_use"] >= 16 * MIB
    printed = outcome(process).out
    assert [path.suffix for path in data.iterdir()] == [".chunks"]
    (failure,) = monitor.of("out_of_memory")
    assert printed == f"True {failure['message']}\n", "nothing is kept alive"
    assert parse_exhausted(failure["message"])[:3] == ("CPU:0", 128 * MIB, "Empty")
    # The holders of the memory were found while the script waited.
    (census,) = [event for event in monitor.of("census") if event["moment"] == "waiting"]
    assert census["alike"][0] == ["pieces", 4, [1 << 20], "float32", "CPU:0", 16 * MIB, "tensors", 4]
    assert monitor.events.index(put_down) < monitor.events.index(census) < monitor.events.index(failure)
    assert monitor.events.index(failure) > monitor.events.index(put_down)
    # The script waited ten seconds. In that time the pool was not reported at each look.
    assert len([event for event in monitor.events if exhausted(event)]) <= 6
