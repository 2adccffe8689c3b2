"""A pool that runs out is reported while TensorFlow still tries; child processes see nothing of this."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.hooked import INJECT, Monitor, outcome, start
from tfmemtop.engine.sources.chunk_maps import read_chunks
from tfmemtop.events import Chunks

Script = Callable[[str], str]

POOL = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "64"}
MIB = 1 << 20

RUNNING_OUT = """
import select, subprocess, sys
import tensorflow as tf
if "room" in sys.argv:
    while not select.select([sys.stdin], [], [], 0)[0]:
        for number in range(1000):
            tf.raw_ops.Empty(shape=[32 << 20], dtype=tf.uint8)
    sys.stdin.readline()
pieces = [tf.zeros([1 << 20]) for _ in range(4)]
print("made", flush=True)
sys.stdin.readline()
print(subprocess.run(["sh", "-c", "env"], capture_output=True, text=True).stdout.count("MEMORY_DUMP"), flush=True)
if "fail" in sys.argv:
    try:
        tf.raw_ops.Empty(shape=[128 << 20], dtype=tf.uint8)
    except tf.errors.ResourceExhaustedError:
        print("failed", flush=True)
"""


def exhausted(event: dict[str, object]) -> bool:
    return event["type"] == "chunks" and event["moment"] == "out_of_memory"


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    folder = tmp_path / "dumps"
    folder.mkdir()
    return folder


def test_the_pool_is_put_down_long_before_the_error(monitor: Monitor, script: Script, dumps: Path) -> None:
    path = script(RUNNING_OUT)
    process = start(monitor, path, "room", "fail", TFMEMTOP_DUMPS=str(dumps), **POOL)
    assert process.stdout is not None and process.stdin is not None
    monitor.wait_for(lambda event: sum(bool(one["in_use"] or one["peak"]) for one in monitor.of("allocator")) > 20)
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "made\n"
    assert not [event for event in monitor.events if exhausted(event)], "no wait is seen where there is room"
    monitor.wait_for(lambda event: event["type"] == "allocator" and event["in_use"] >= 16 * MIB)
    process.stdin.write("\n")
    process.stdin.flush()
    put_down = monitor.wait_for(exhausted)
    where = monitor.of("waiting")[0]
    assert where["operation"] == "Empty" and where["code"].startswith("tf.raw_ops.Empty(")
    assert not monitor.of("out_of_memory")
    pieces, _ = read_chunks(dumps, msgspec.convert({**put_down, "t": 0.0}, Chunks))
    assert sum(piece.size for piece in pieces if piece.in_use) == put_down["in_use"] >= 16 * MIB
    # A child that is not Python, started while there is a pool, did not have our variable in its environment.
    assert outcome(process).out == "0\nfailed\n"
    assert [path.suffix for path in dumps.iterdir()] == [".chunks"], "TensorFlow wrote nothing"
    (failure,) = monitor.of("out_of_memory")
    # The holders of the memory were found while the script waited.
    (census,) = [event for event in monitor.of("census") if event.get("tensors") is not None]
    assert census["alike"][0] == ["pieces", 4, [1 << 20], "float32", "CPU:0", 16 * MIB]
    assert monitor.events.index(put_down) < monitor.events.index(census) < monitor.events.index(failure)
    assert monitor.events.index(failure) > monitor.events.index(put_down)
    assert not monitor.of("hook_error")
    # The script waited ten seconds. In that time the pool was reported again, but not at each look.
    assert 2 <= len([event for event in monitor.events if exhausted(event)]) <= 6


UNWATCHED = {
    "forbidden": lambda text: text,
    "a version that is not known": lambda text: text.replace('    "2.', '    "9.'),
    "another pointer": lambda text: text.replace('"environment": 8', '"environment": 16'),
}
"""Changes to the table of places, after which the pool is not read in place, by their reason.

tests/probe/test_direct.py tests that tables with other wrong places are rejected.
"""


@pytest.mark.parametrize("why", UNWATCHED)
def test_else_tensorflow_writes_it(monitor: Monitor, script: Script, dumps: Path, tmp_path: Path, why: str) -> None:
    """TensorFlow writes the dump where the table of places does not fit, or where reading in place is forbidden."""
    package = tmp_path / "copy"
    for room in ("inject", "agent"):
        shutil.copytree(INJECT.parent / room, package / room, ignore=shutil.ignore_patterns("__pycache__"))
    layouts = package / "agent" / "layouts.py"
    text = layouts.read_text()
    layouts.write_text(UNWATCHED[why](text))
    assert (layouts.read_text() == text) == (why == "forbidden")
    more = {"TFMEMTOP_NO_PROBE": "1"} if why == "forbidden" else {}
    variables = {"TFMEMTOP_DUMPS": str(dumps), **POOL, **more}
    hook = {"PYTHONPATH": str(package / "inject"), "TFMEMTOP_SOCKET": str(monitor.path), "TFMEMTOP_INTERVAL": "0.02"}
    arguments = ["fail"] if why == "forbidden" else []  # to fail takes ten seconds
    process = start(None, script(RUNNING_OUT), *arguments, **variables, **hook)
    assert process.stdout is not None and process.stdout.readline() == "made\n"
    monitor.wait_for(lambda event: event["type"] == "allocator" and event["in_use"] >= 16 * MIB)
    told = len(monitor.of("allocator"))
    monitor.wait_for(lambda _: len(monitor.of("allocator")) > told + 1)
    assert outcome(process, "\n").out == ("1\nfailed\n" if arguments else "1\n")
    written = [path.name.rpartition("_allocator")[0] for path in dumps.iterdir()]
    assert set(written) == ({f"{process.pid}_bfc_cpu"} if arguments else set())
    assert not [event for event in monitor.events if exhausted(event)] and not monitor.of("hook_error")
