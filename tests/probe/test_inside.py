"""What the probe reports from inside a real training, on TensorFlow's BFC allocator for the CPU."""

import base64
import json
import os
import subprocess
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest

from tests.forked import Fork
from tests.hooked import Event, Monitor, outcome, typed
from tests.probe.cached import said_by_hook
from tfmemtop.agent.native import VERSION
from tfmemtop.probe.build import ADDRESSES, build
from tfmemtop.probe.cache import checksum_of

MIB = 1 << 20


def load(monitor: Monitor, pid: int, library: Path, checksum: int | None = None) -> Event:
    """Have the hook load the library, as the engine does. Wait for the event with the result, and return it."""
    monitor.wait_for(lambda event: event["type"] in ("hook", "allocator") and event["pid"] == pid)
    if checksum is None:
        checksum = checksum_of(library.read_bytes())
    monitor.say(pid, {"do": "load", "path": str(library), "checksum": checksum})
    verdicts = ("loaded", "failed")
    return monitor.wait_for(lambda event: event.get("state") in verdicts and event["pid"] == pid)


STEPS = """
import json, os, sys, time
import tensorflow as tf
kept = tf.zeros([1 << 20])
print("begun", flush=True)
for line in sys.stdin:
    step = line.strip()
    if step == "spike":
        # 500 MiB, which nothing writes to, held for 5 ms.
        spike = tf.raw_ops.Empty(shape=[125 << 20], dtype=tf.float32, init=False)
        time.sleep(0.005)
        del spike
    print(json.dumps(tf.config.experimental.get_memory_info("CPU:0")), flush=True)
"""


def test_pool_figures_spikes_and_growth(monitor: Monitor, forked: Fork, library: Path) -> None:
    # Most spikes lie between two readings.
    process = forked(STEPS, TF_CPU_BFC_MEM_LIMIT_IN_MB="2048")
    pid, stdin, stdout = process.pid, process.stdin, process.stdout
    assert stdout.readline() == "begun\n"
    monitor.wait_for(lambda event: event["type"] == "allocator")
    assert load(monitor, pid, library)["state"] == "loaded"

    def step(name: str) -> Event:
        stdin.write(name + "\n")
        stdin.flush()
        return dict(json.loads(stdout.readline()))

    grown = len(monitor.of("pool_growth"))  # read in place, before the library was there
    told = len(monitor.of("allocator"))
    monitor.wait_for(lambda _: len(monitor.of("allocator")) > told)
    first = monitor.of("allocator")[-1]
    assert first["high"] is not None
    assert first["allocator"] == "bfc_cpu_allocator_for_gpu" and first["limit"] == 2048 * MIB
    assert first["in_use"] <= first["peak"] <= first["peak_pool"] == first["pool"] and first["allocations"] > 0

    def spikes() -> int:
        # One reading reports a spike. The next ones report it, too, if readings fell into its few milliseconds.
        return sum(high for high, _ in groupby((event["high"] or 0) >= 500 * MIB for event in monitor.of("allocator")))

    def is_over(event: Event, made: int) -> bool:
        """Whether the spike is over, with which *made* allocations were made, and no later reading can report it."""
        return event["type"] == "allocator" and (event["allocations"] or 0) >= made and event["high"] < 500 * MIB

    for number in range(1, 11):
        printed = step("spike")
        monitor.wait_for(partial(is_over, made=first["allocations"] + 2 * number))  # an operation's shape is one, too
        assert spikes() <= number
        assert printed["current"] < 500 * MIB <= printed["peak"]
    assert spikes() >= 1  # on a busy machine, the library may miss some
    (growth,) = monitor.of("pool_growth")[grown:]
    assert growth["before"] == first["pool"] and growth["after"] - growth["before"] == 512 * MIB

    assert outcome(process).code == 0
    assert monitor.of("hook_end")


SESSION = """
import sys
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
with tf.Session() as session:
    kept = session.run(tf.zeros([1 << 20]))
    print("begun", flush=True)
    sys.stdin.readline()
    variable = tf.Variable(tf.zeros([8 << 20]))
    session.run(variable.initializer)
    print("held", flush=True)
    sys.stdin.readline()
    session.run(variable.initializer)
"""


def test_a_session_of_tensorflow_1(monitor: Monitor, forked: Fork, library: Path) -> None:
    process = forked(SESSION)
    assert process.stdout.readline() == "begun\n"
    # TensorFlow's public API does not show this pool. Read in place, it is reported before the library is loaded.
    assert monitor.wait_for(lambda event: event["type"] == "allocator")["limit"] == 512 * MIB
    assert load(monitor, process.pid, library)["state"] == "loaded"
    typed(process)
    assert process.stdout.readline() == "held\n"
    reading = monitor.wait_for(lambda event: event["type"] == "allocator" and event["in_use"] >= 32 * MIB)
    assert reading["pool"] >= reading["in_use"] and reading["device"] == "CPU:0"
    (effective,) = monitor.of("effective")
    assert effective["limit"] == 512 * MIB
    assert outcome(process, "\n").code == 0


WAITING = """
import sys
import tensorflow as tf
kept = tf.zeros([1 << 20])
print("begun", flush=True)
sys.stdin.readline()
"""


def compile_impostor(folder: Path, source: str) -> Path:
    path = folder / "impostor.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", path], input=source.encode(), check=True)
    path.chmod(0o600)
    return path


LIAR = """
#include <cstring>
extern "C" {
unsigned tfmemtop_version() { return %s; }
int tfmemtop_gpus() { return 0; }
int tfmemtop_stats(int kind, int index, long* out) { out[1] = 42; out[2] = 43; out[3] = 44; out[4] = 45; return 1; }
int tfmemtop_sampler_stop() { return 1; }
int tfmemtop_window_forbid(int forbid) { return 1; }
}
"""


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (LIAR % VERSION, "were read as 42 and 43"),
        (LIAR % 99, "version 99"),
        ("int nothing;", "undefined symbol"),
    ],
)
def test_a_library_that_fails_its_check_is_never_called_again(
    monitor: Monitor, forked: Fork, tmp_path: Path, source: str, why: str
) -> None:
    impostor = compile_impostor(tmp_path, source)
    process = forked(WAITING)
    assert process.stdout.readline() == "begun\n"
    verdict = load(monitor, process.pid, impostor)
    assert verdict["state"] == "failed" and why in said_by_hook(verdict)
    seen = len(monitor.of("allocator"))
    monitor.wait_for(lambda _: len(monitor.of("allocator")) > seen + 2)
    assert outcome(process, "\n").code == 0
    # All readings come from reading in place.
    readings = monitor.of("allocator")
    assert all(event["in_use"] != 42 and (event["pool"] is not None or not event["in_use"]) for event in readings)
    assert readings[-1]["high"] is None


def test_a_library_that_changed_since_it_was_checked_is_not_loaded(
    monitor: Monitor, forked: Fork, library: Path, tmp_path: Path
) -> None:
    changed = tmp_path / "probe.so"
    changed.write_bytes(library.read_bytes()[:16384])  # to load it would crash the script
    changed.chmod(0o600)
    process = forked(WAITING)
    assert process.stdout.readline() == "begun\n"
    refused = load(monitor, process.pid, changed, checksum_of(library.read_bytes()))
    assert said_by_hook(refused).endswith("its file is not the one that was checked")
    monitor.say(process.pid, {"do": "what"})
    monitor.say(process.pid, {})
    assert monitor.error()["doing"] == "obey"
    assert outcome(process, "\n").code == 0


def test_a_library_whose_file_is_emptied_later_goes_on(
    monitor: Monitor, forked: Fork, library: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "probe.so"
    copy.write_bytes(library.read_bytes())
    copy.chmod(0o600)
    process = forked(WAITING)
    assert process.stdout.readline() == "begun\n"
    assert load(monitor, process.pid, copy)["state"] == "loaded"
    os.truncate(copy, 0)
    seen = len(monitor.of("allocator"))
    monitor.wait_for(lambda _: len(monitor.of("allocator")) > seen + 2)
    assert monitor.of("allocator")[-1]["high"] is not None, "of the library"
    assert outcome(process, "\n").code == 0


BUFFERS = """
import ctypes, json, sys
import tensorflow as tf

def address(tensor):
    capsule = tf.experimental.dlpack.to_dlpack(tensor)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p.from_address(pointer(capsule, b"dltensor")).value

dense = tf.Variable(tf.zeros([600, 1000]), name="dense")
sparse = tf.Variable(tf.zeros([500, 1000]), name="sparse")
plain = tf.fill([400, 1000], 1.0)
alike = [tf.fill([300, 1000], 1.0) for _ in range(3)]
dense.assign(tf.ones([600, 1000]))
print("begun", flush=True)
sys.stdin.readline()
known = {"dense": address(dense.value()), "plain": address(plain), "alike": sorted(map(address, alike))}
sparse.scatter_update(tf.IndexedSlices(tf.ones([1, 1000]), [0]))  # to read its value is to copy it from now on
print(json.dumps([known, tf.config.experimental.get_memory_info("CPU:0")]), flush=True)
sys.stdin.readline()
print(json.dumps(tf.config.experimental.get_memory_info("CPU:0")), flush=True)
sys.stdin.readline()
"""


def test_the_addresses_of_buffers_are_those_of_dlpack(
    monitor: Monitor, forked: Fork, library: Path, tensorflow_folder: Path
) -> None:
    process = forked(BUFFERS)
    assert process.stdout.readline() == "begun\n"
    built = build(tensorflow_folder, ADDRESSES)
    monitor.wait_for(lambda event: event["type"] == "allocator")
    monitor.say(process.pid, {"do": "locate", "path": built.path, "checksum": built.checksum})
    assert load(monitor, process.pid, library)["state"] == "loaded", "the two libraries are not taken for one"
    typed(process)
    known, before = json.loads(process.stdout.readline())
    monitor.say(process.pid, {"do": "census", "tensors": True})
    census = monitor.wait_for(lambda event: event["type"] == "census" and event.get("tensors") is not None)
    typed(process)
    assert json.loads(process.stdout.readline()) == before, "nothing was allocated"
    found = {name: rest[-1] for name, *rest in census["largest"]}
    assert (found["dense"], found["plain"]) == (known["dense"], known["plain"])
    assert found["sparse"] % 64 == 0 and found["sparse"] != 500 * 1000 * 4
    packed = base64.b64decode(next(group[8] for group in census["alike"] if group[0] == "alike"))
    assert sorted(int.from_bytes(packed[at : at + 8], "little") for at in range(0, len(packed), 8)) == known["alike"]
    assert outcome(process, "\n").code == 0
