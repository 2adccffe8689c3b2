"""A look for tensors also finds gradient tapes, data sets that keep elements, and large arrays of NumPy's."""

import re

from tests.agent.test_tensors import ask
from tests.hooked import INJECT, Forks, Monitor, Script, line, outcome, typed

TAPES = """
import sys
import tensorflow as tf

def wait():
    print("up", flush=True)
    sys.stdin.readline()

x = tf.Variable(1.0)
with tf.GradientTape(persistent=True) as tape:
    y = x * x
    with tf.GradientTape() as other:
        wait()
    with tape.stop_recording():
        wait()
wait()
"""


def test_tapes_that_record_or_are_persistent(monitor: Monitor, script: Script, forks: Forks) -> None:
    process = forks.start(monitor, script(TAPES))
    counts = []
    for _ in range(3):
        assert line(process) == "up"
        found = ask(monitor, process)
        counts.append((found["tapes"], found["tapes_in"]))
        typed(process)
    assert counts[0][0] == 2 and counts[1:] == [(1, "tape"), (1, "tape")], (
        "a persistent tape keeps what it has recorded"
    )
    assert outcome(process).code == 0


DATASETS = """
import sys
import tensorflow as tf

def images():
    yield tf.zeros([300, 300, 3]), 1

def unknown():
    yield tf.zeros([3])

signature = tf.TensorSpec([300, 300, 3]), tf.TensorSpec([], tf.int32)
dataset = tf.data.Dataset.from_generator(images, output_signature=signature)
shuffled = dataset.shuffle(tf.constant(1000, tf.int64)).batch(16).prefetch(2)
cached = dataset.cache()
on_disk = dataset.cache(sys.argv[0] + ".cache")
ahead = dataset.prefetch(tf.data.AUTOTUNE)
ragged = tf.data.Dataset.from_generator(unknown, output_signature=tf.TensorSpec([None])).shuffle(buffer_size=5)
gone = dataset.shuffle(77)
del gone
print("up", flush=True)
sys.stdin.readline()
print(next(iter(tf.data.Dataset.range(8).shuffle(4, seed=1).batch(8))).numpy().sum())
"""


def test_data_sets_that_keep_elements(monitor: Monitor, script: Script, forks: Forks) -> None:
    process = forks.up(monitor, script(DATASETS))
    each = 4 * 300 * 300 * 3 + 4
    assert sorted((one for one in ask(monitor, process)["buffers"] if one[0] != "generator"), key=str) == [
        ["batch", 16, each],
        ["cache", None, each],
        ["prefetch", 2, 16 * each],
        ["prefetch", None, each],
        ["shuffle", 1000, each],
        ["shuffle", 5, None],
    ]
    assert outcome(process, "\n").out == "28\n"


ARRAYS = """
import sys
import numpy as np
import tensorflow as tf

class Data:
    def __init__(self):
        self.images = np.zeros([9 << 20, 3], np.uint8)

data = Data()
pair = {"train": [np.zeros([5 << 20], np.float32), np.zeros([9])]}
view = data.images[:1000000 * 6]
flags = np.zeros([34 << 20], bool)[:17 << 20]
tf.ones([])
small = np.zeros([1 << 20])
frames = [np.zeros([1 << 18], np.float64) for _ in range(9)]
views = {number: small[number:] for number in range(9)}
heap = [(number, np.zeros([1 << 14], np.float32)) for number in range(300)]
print("up", flush=True)
sys.stdin.readline()
"""


def test_large_arrays(monitor: Monitor, script: Script, forks: Forks) -> None:
    process = forks.up(monitor, script(ARRAYS))
    monitor.say(process.pid, {"do": "census"})  # without a look
    monitor.wait_for(lambda event: event["type"] == "census" and event["arrays"] != [])
    assert [row[0] for row in monitor.of("census")[-1]["arrays"]] == ["view", "flags"]
    assert ask(monitor, process)["arrays"] == [
        ["data.images", [9 << 20, 3], "uint8", 27 << 20],
        ["pair['train'][0]", [5 << 20], "float32", 20 << 20],
        ["heap[*]", [300], "", 300 << 16],
        ["frames[*]", [9], "", 18 << 20],
        ["flags", [17 << 20], "bool", 17 << 20],
    ]
    assert outcome(process, "\n").code == 0


BESIDE = """
import ctypes, os, random, select, sys, threading
import tensorflow as tf
log = open(os.devnull, "w")
sys.addaudithook(lambda event, arguments: log.write(event + "\\n"))  # lets other threads run at each event
ctypes.pythonapi.PySys_AddAuditHook(ctypes.CDLL(None).sched_yield, None)
ended = threading.Event()

def tree(depth):
    return {"number": depth, "kids": [tree(depth - 1 - random.randrange(2)) for _ in range(2)] if depth > 0 else []}

def visit(node):
    yield node["number"]
    for kid in node["kids"]:
        yield from visit(kid)

def loader():
    while not ended.wait(0.005):
        sum(visit(tree(random.randrange(3, 9))))

threads = [threading.Thread(target=loader) for _ in range(4)]
for thread in threads:
    thread.start()
weights, kept = tf.Variable(tf.ones([64, 64])), []
print("up", flush=True)
while len(kept) < 100 or not select.select([sys.stdin], [], [], 0.001)[0]:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(weights, weights))
    kept.append(tape.gradient(loss, weights))
    del kept[:-100]
ended.set()
for thread in threads:
    thread.join()
print(len(kept) == 100)
"""


def test_threads_and_audit_hooks_run_while_objects_are_looked_at(
    monitor: Monitor, script: Script, forks: Forks
) -> None:
    process = forks.up(monitor, script(BESIDE))
    for _ in range(20):
        ask(monitor, process)
    assert outcome(process, "\n")[:2] == (0, "True\n")


def test_no_object_of_pythons_is_read_at_an_address() -> None:
    """Where CPython keeps what, in its own structures, is private and differs from version to version."""
    for path in (INJECT.parent / "agent").rglob("*.py"):
        assert not {"from_address", "string_at", "memmove", "cast"} & set(re.findall(r"\w+", path.read_text())), path
