"""What the monitor receives from a real training on TensorFlow's BFC allocator."""

import json
from collections.abc import Callable

from tests.hooked import Event, Forks, Monitor, Script, line, outcome, start, typed

MIB = 1 << 20

FAILING = """
import json, sys
import tensorflow as tf
tf.config.set_visible_devices([], "GPU")
kept = tf.zeros([1 << 20])
big = tf.zeros([8 << 20])
del big
print(json.dumps(tf.config.experimental.get_memory_info("CPU:0")), flush=True)
sys.stdin.readline()
try:
    raise tf.errors.ResourceExhaustedError(None, None, "the queue is full")
except tf.errors.ResourceExhaustedError:
    pass
tf.config.set_visible_devices([], "CPU")
"""


def test_figures_and_settings_are_those_of_tensorflow(monitor: Monitor, script: Script, forks: Forks) -> None:
    path = script(FAILING)
    process = forks.start(monitor, path)
    printed = json.loads(line(process))
    # The same is in use before the script reaches its peak.
    figures = printed["current"], printed["peak"]
    reading = monitor.wait_for(
        lambda event: event["type"] == "allocator" and (event["in_use"], event["peak"]) == figures
    )
    assert {**reading, "pool": 0, "peak_pool": 0, "allocations": 0, "high": None} == {
        "type": "allocator",
        "pid": process.pid,
        "device": "CPU:0",
        "allocator": "bfc_cpu_allocator_for_gpu",
        "in_use": printed["current"],
        "peak": printed["peak"],
        "limit": 512 * MIB,
        **{"pool": 0, "peak_pool": 0, "allocations": 0, "high": None},
    }
    assert printed["peak"] <= reading["pool"] == reading["peak_pool"] <= 512 * MIB and reading["allocations"] > 0
    assert printed["peak"] >= 36 * MIB > printed["current"] >= 4 * MIB
    ended = outcome(process, "\n")
    assert ended.code == 1

    (hook,) = monitor.of("hook")
    assert hook["tensorflow"].startswith("2.") and hook["tensorflow_path"].endswith("/tensorflow")
    assert monitor.of("effective") == [
        {
            **{"type": "effective", "pid": process.pid, "device": "CPU:0", "physical": None, "uuid": None},
            **{"growth": True, "limit": 512 * MIB, "allocator": "bfc", "settled": []},
        }
    ]
    asked, refused = monitor.of("requested")
    assert (asked["call"], asked["devices"], asked["device_type"]) == ("set_visible_devices", [], "GPU")
    lines = FAILING.splitlines()
    for request in (asked, refused):
        assert request["file"] == path and "set_visible_devices" in lines[request["line"] - 1]
    assert refused["error"] == "RuntimeError: Visible devices cannot be modified after being initialized"
    assert not monitor.of("out_of_memory"), "a full queue is no failed allocation"
    assert monitor.of("hook_end")


def test_a_reset_context_is_read_again(monitor: Monitor, script: Script, forks: Forks) -> None:
    source = """
import sys
import tensorflow as tf
from tensorflow.python.eager import context
kept = tf.zeros([1 << 20])
del kept
context._reset_context()
print("reset", flush=True)
sys.stdin.readline()
kept = tf.zeros([4 << 20])
"""
    assert outcome(forks.start(monitor, script(source)), "\n")[:2] == (0, "reset\n")
    assert len(monitor.of("effective")) == 2
    assert monitor.of("allocator")[-1]["in_use"] >= 16 * MIB


CHILDREN = """
import json, multiprocessing, os, sys
import tensorflow as tf

def train(size, gate):
    import tensorflow as tf
    kept = tf.zeros([size << 18])
    print(os.getpid(), "trained", flush=True)
    gate.recv()

def idle():
    print(os.getpid(), "idle", flush=True)

if __name__ == "__main__":
    for size, method in enumerate(["fork", "spawn"], 1):
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context(method).Process(target=train, args=(size, there))
        child.start()
        here.send(sys.stdin.readline())
        child.join()
        assert child.exitcode == 0
    kept = tf.zeros([1])
    child = multiprocessing.get_context("fork").Process(target=idle)
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""


def reading_of(pid: int) -> Callable[[Event], bool]:
    return lambda event: (event["type"], event["pid"]) == ("allocator", pid)


def test_children_each_speak_for_themselves(monitor: Monitor, script: Script, forks: Forks) -> None:
    process = forks.start(monitor, script(CHILDREN))
    for _ in ("forked", "spawned"):
        pid = int(line(process).split()[0])
        monitor.wait_for(reading_of(pid))
        assert monitor.of("hook", pid) and monitor.of("effective", pid)
        typed(process)
    ended = outcome(process)
    assert ended.code == 0, ended.err
    # This child was forked from an initialised TensorFlow: the lock of its allocator may never be released.
    idle = int(ended.out.split()[0])
    assert not [event for event in monitor.events if event["pid"] == idle]


LONG = """
import sys
import tensorflow as tf
tf.zeros([8])
print("first", flush=True)
sys.stdin.readline()
for _ in range(3000):
    tf.config.set_visible_devices([], "GPU")
kept = tf.zeros([1 << 20])
print("last", flush=True)
sys.stdin.readline()
"""


def test_a_monitor_that_dies_is_not_missed(monitor: Monitor, script: Script, forks: Forks) -> None:
    process = forks.start(monitor, script(LONG))
    assert line(process) == "first"
    monitor.wait_for(lambda event: event["type"] == "allocator")
    monitor.die()
    assert outcome(process, "\n\n")[:2] == (0, "last\n")


def test_a_monitor_that_does_not_read_holds_nothing_up(monitor: Monitor, script: Script, forks: Forks) -> None:
    process = forks.start(monitor, script(LONG))
    assert line(process) == "first"
    monitor.wait_for(lambda event: event["type"] == "allocator")
    monitor.stop_reading()
    typed(process)
    assert line(process) == "last"
    monitor.go_on_reading()
    # The events that could wait come first, then current readings again.
    monitor.wait_for(lambda event: event["type"] == "allocator" and event["in_use"] >= 4 * MIB)
    assert outcome(process, "\n").code == 0
    dropped = monitor.wait_for(lambda event: event["type"] == "hook_end")["dropped"]
    assert dropped > 0
    assert len(monitor.of("requested")) + dropped >= 3000


def test_neither_replaced_threads_nor_settings_without_sense_keep_pools_from_being_read(
    monitor: Monitor, script: Script
) -> None:
    """gevent and eventlet replace threads by greenlets: the sampler must not be one.

    Settings without sense are reported as errors of the hook.
    """
    source = """
import _thread, sys

def greenlet(function, arguments):
    raise RuntimeError("no threads here")

_thread.start_new_thread = greenlet
import tensorflow as tf
tf.zeros([8])
print("ready", flush=True)
sys.stdin.readline()
"""
    process = start(monitor, script(source), TFMEMTOP_SETTINGS="no JSON", TFMEMTOP_INTERVAL="often")
    monitor.wait_for(lambda event: event["type"] == "allocator")
    assert outcome(process, "\n")[:2] == (0, "ready\n")
    monitor.error()
    complaints = [event["doing"] for event in monitor.of("hook_error")]
    assert complaints == ["environment:TFMEMTOP_INTERVAL", "environment:TFMEMTOP_SETTINGS"]
