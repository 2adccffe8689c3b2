"""A look for tensors also finds gradient tapes, data sets that keep elements, and large arrays of NumPy's."""

from collections.abc import Callable

from tests.agent.test_tensors import ask, line, typed
from tests.hooked import Forks, Monitor, outcome

Script = Callable[[str], str]

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
        counts.append(ask(monitor, process)["tapes"])
        typed(process)
    assert counts == [2, 1, 1], "a persistent tape keeps what it has recorded"
    assert outcome(process).code == 0 and not monitor.of("hook_error")


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
    process = forks.start(monitor, script(DATASETS))
    assert line(process) == "up"
    each = 4 * 300 * 300 * 3 + 4
    assert sorted((one for one in ask(monitor, process)["buffers"] if one[0] != "generator"), key=str) == [
        ["batch", 16, each],
        ["cache", None, each],
        ["prefetch", 2, 16 * each],
        ["prefetch", None, each],
        ["shuffle", 1000, each],
        ["shuffle", 5, None],
    ]
    assert outcome(process, "\n").out == "28\n" and not monitor.of("hook_error")


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
print("up", flush=True)
sys.stdin.readline()
"""


def test_large_arrays(monitor: Monitor, script: Script, forks: Forks) -> None:
    process = forks.start(monitor, script(ARRAYS))
    assert line(process) == "up"
    monitor.say(process.pid, {"do": "census"})  # without a look
    monitor.wait_for(lambda event: event["type"] == "census" and event["arrays"] != [])
    assert [row[0] for row in monitor.of("census")[-1]["arrays"]] == ["view", "flags"]
    assert ask(monitor, process)["arrays"] == [
        ["data.images", [9 << 20, 3], "uint8", 27 << 20],
        ["pair['train'][0]", [5 << 20], "float32", 20 << 20],
        ["flags", [17 << 20], "bool", 17 << 20],
    ]
    assert outcome(process, "\n").code == 0 and not monitor.of("hook_error")
