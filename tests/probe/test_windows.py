"""Windows of allocations in real trainings, on TensorFlow's BFC allocator for the CPU."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forked import Fork
from tests.hooked import Event, Monitor, outcome
from tests.probe.watched import Watched, inside

BEGINNING = """
import sys
import tensorflow as tf
tf.config.set_visible_devices(tf.config.list_physical_devices("CPU"), "CPU")  # the hook speaks of it
sys.stdin.readline()
"""
"""No device is made before the probe is loaded, as in a script that first imports TensorFlow for seconds."""

Watch = Callable[[str], Watched]


@pytest.fixture
def watch(monitor: Monitor, forked: Fork, library: Path, tmp_path: Path) -> Watch:
    """Return a function that starts a script whose source begins with :data:`BEGINNING`."""

    (dumps := tmp_path / "dumps").mkdir()

    def watched(source: str) -> Watched:
        found = Watched(monitor, forked(source), library, dumps)
        found.go_on()
        return found

    return watched


KERAS = f"""{BEGINNING}
import json
import keras, numpy as np

class Wait(keras.callbacks.Callback):
    batches = 0
    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1
        if self.batches == 3:
            print(json.dumps(tf.config.experimental.get_memory_info("CPU:0")), flush=True)
            sys.stdin.readline()
        if self.batches % 100 == 0 and done.exists():
            self.model.stop_training = True

import pathlib
done = pathlib.Path(__file__).with_name("done")
model = keras.Sequential([
    keras.layers.Input((64,)), keras.layers.Dense(256, activation="relu", name="wide"), keras.layers.Dense(1)])
model.compile("adam", "mse", jit_compile=False)
x, y = np.zeros((320, 64), "f"), np.zeros((320, 1), "f")
model.fit(x, y, batch_size=32, epochs=100000, verbose=0, callbacks=[Wait()])
print("trained", flush=True)
"""


def test_a_keras_fit_from_the_making_of_its_devices_on(watch: Watch, tmp_path: Path) -> None:
    keras = watch(KERAS)
    said = json.loads(keras.line())
    told = keras.ask()
    found = keras.read(told)
    assert (told["opened"], told["last"], told["closed"]) == ("start", False, None), "it goes on"
    assert (told["function"], told["pools"]) == ("multi_step_on_iterator", ["CPU:0"])
    # The script goes on while the window is opened, so on a busy machine a first scalar may be older.
    assert sum(found.before().values()) < 4096, "it began before the first weight was made"
    _, peak = found.replay()
    assert len(found.steps) >= 3
    assert peak == said["peak"], "what stands at the peak is what the allocator says"
    made = [record for record in found.records if record.size > 0]
    assert sum(record.size for record in made if record.operation) > 0.9 * sum(record.size for record in made)
    assert any("gradient_tape" in record.operation and "wide" in record.operation for record in inside(found, -1))
    assert {"[32,256]", "[64,256]"} <= {record.shape for record in inside(found, -1)}
    called = {call.run for call in found.calls}
    # While TensorFlow compiles a function, it computes constants. This is no run: its number is 0 or -1.
    gradients = [record for record in made if "gradient_tape" in record.operation and record.run not in (0, -1)]
    assert gradients and {record.run for record in gradients} <= called, "Python has called the runs that make them"
    assert len(found.calls) >= len(found.steps) and len({call.thread for call in found.calls}) == 1

    keras.go_on()
    before = found
    for _ in range(2):
        told = keras.ask()
        found = keras.read(told)
        found.replay()
        assert (told["window"], found.records[: len(before.records)]) == (1, before.records) and told["cost_us"] > 0
        assert found.steps[: len(before.steps)] == before.steps
        before = found
    (tmp_path / "done").touch()
    assert outcome(keras.process)[:2] == (0, "trained\n")


RECORDED = """
import ctypes, os
ones = tf.ones([32, 64])
levels = ctypes.CDLL(os.path.dirname(tf.__file__) + "/libtensorflow_framework.so.2")
level = ctypes.c_int.in_dll(levels, "_ZN3tsl8profiler8internal13g_trace_levelE")
"""

LEVEL = f"""{RECORDED}
print(level.value, flush=True)
child = os.fork()
if child == 0:
    os.write(1, b"%d\\n" % level.value)
    os._exit(0)
os.waitpid(child, 0)
"""

EARLY = f"""{BEGINNING}{LEVEL}
import pathlib
with tf.profiler.experimental.Profile(sys.argv[1]):
    ones + 1
(profile,) = pathlib.Path(sys.argv[1]).rglob("*.pb")
print(level.value, b"MemoryAllocation" in profile.read_bytes(), flush=True)
"""


def test_what_is_recorded_before_the_probe_is_there(monitor: Monitor, forked: Fork, tmp_path: Path) -> None:
    process = forked(EARLY, str(tmp_path / "profile"))
    monitor.wait_for(lambda event: event["type"] == "hook" and event["pid"] == process.pid)
    monitor.say(process.pid, {"do": "expect"})
    out = outcome(process, "\n").out.splitlines()
    assert out == ["2", "-1", "-1 True"], "TensorFlow records, but not in a forked child or beside a profiler"


LOOPS = f"""{BEGINNING}{LEVEL}
import resource, threading

weights = tf.Variable(tf.ones([64, 64]))
commands = [""]

def step(x):
    columns = []
    for number in range(0 if tf.executing_eagerly() else 3):  # a window has soon as many allocations as it may have
        columns += tf.unstack(x + float(number), axis=1)
    with tf.GradientTape() as tape:
        product = tf.matmul(x, weights, name="product")
        loss = tf.reduce_sum(tf.square(product))
        if columns:
            loss += tf.add_n(columns)[0]
    weights.assign_sub(1e-6 * tape.gradient(loss, weights))
    return loss  # otherwise TensorFlow leaves the columns out

def listen():
    for line in sys.stdin:
        commands.append(line.strip())

sys.stdin.readline()
threading.Thread(target=listen, daemon=True).start()
train_step = tf.function(step)
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
while commands[-1] != "end":
    if commands[-1] == "once":
        commands[-1] = "functions"
        step(tf.ones([20_000, 64]))
        print(tf.config.experimental.get_memory_info("CPU:0")["peak"], flush=True)
    elif commands[-1] == "eager":
        step(ones)
    else:
        train_step(ones)
    full = commands[-1] == "full"
    if full != (resource.getrlimit(resource.RLIMIT_FSIZE) != limits):
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, limits[1]) if full else limits)
"""


def test_loops_of_ones_own(watch: Watch, tmp_path: Path) -> None:
    loops = watch(LOOPS)
    assert loops.line() == "2", "the window of the start is open"
    assert loops.line() == "-1", "in a forked child nothing is recorded"
    loops.go_on()
    told = loops.until("start")
    assert (told["closed"], told["function"]) == ("events", "step"), "as many as are recorded at the start"
    assert len(loops.read(told).steps) > 500

    told = loops.ask()
    found = loops.read(told)
    found.replay()
    assert (told["closed"], told["function"]) == ("step", "step")
    assert {"product", "gradient_tape/product/MatMul_1"} & {record.operation for record in inside(found, 0)}
    loops.say({"do": "holders", "finding": True})
    assert loops.until("finding")["closed"] in ("step", "time")
    loops.say({"do": "lines", "operations": ["StatefulPartitionedCall/product", "nowhere/to/be/found"]})
    (line,) = loops.monitor.wait_for(lambda event: event["type"] == "operation_lines")["lines"]
    script = tmp_path / "train.py"
    number = 1 + LOOPS.splitlines().index('        product = tf.matmul(x, weights, name="product")')
    code = script.read_text().splitlines()[number - 1].strip()
    called = 1 + LOOPS.splitlines().index("        train_step(ones)")
    stack = [f"<module> {script}:{called}", f"step {script}:{number}"]
    assert line[:4] == ["StatefulPartitionedCall/product", str(script), number, code] and line[4][-2:] == stack
    assert line[5] == "step", "the name of its graph"

    loops.go_on("eager")
    for _ in range(20):  # a busy machine may be too slow for a short window; the next is longer
        told = loops.ask()
        found = loops.read(told)
        found.replay()
        if told["closed"] == "step" and not told["function"]:
            break
    assert (told["closed"], told["function"]) == ("step", "")
    assert [record.operation for record in inside(found, 0)].count("MatMul") == 2, "forward, and to the weights"

    risen = loops.ended("peak")
    loops.go_on("once")
    peak = int(loops.line())
    told = loops.until("peak", risen + 1)
    found = loops.read(told)
    assert found.replay()[1] == peak, "a step that needs more is recorded, although it comes only once"
    assert {"MatMul", "Square"} <= {record.operation for record in found.records if record.size >= 4 * 20_000 * 64}

    loops.go_on("full")
    while (told := loops.ask())["closed"] != "disk":
        assert told["closed"] in ("step", "time")
    # In a step, some 200 chunks of 32 bytes are in use; its some 400 records take 64 bytes each.
    assert 0 < told["bytes"] <= 16_000 and loops.read(told).chunks, "what could be written is whole"
    loops.go_on("functions")
    while (told := loops.ask())["closed"] != "step":
        assert told["closed"] in ("disk", "time")
    loops.read(told).replay()
    loops.go_on("end")
    assert outcome(loops.process).code == 0


UNFINISHED = f"""{BEGINNING}{RECORDED}
while level.value != 2:
    pass  # the window of the start opens beside the script
kept = [tf.ones([1000 + number]) for number in range(50)]
print("made", flush=True)
while not sys.stdin.readline():
    pass
"""


def test_a_script_that_ends_or_is_killed_in_a_window(watch: Watch, monitor: Monitor) -> None:
    ending, killed = watch(UNFINISHED), watch(UNFINISHED)
    assert ending.line() == killed.line() == "made"
    ending.go_on()
    assert outcome(ending.process).code == 0
    told = ending.until("start")
    assert told["closed"] == "exit"
    found = ending.read(told)
    assert {f"[{1000 + number}]" for number in range(50)} <= {record.shape for record in found.records}

    def has_all(event: Event) -> bool:
        of_killed = event["type"] == "window" and event["pid"] == killed.pid
        return of_killed and killed.read(event).replay() == found.replay()

    told = monitor.wait_for(has_all)
    killed.process.kill()
    outcome(killed.process)
    assert not told["last"] and told["closed"] is None
