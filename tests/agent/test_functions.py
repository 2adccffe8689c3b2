"""The counts of calls and tracings are right for real functions and real trainings."""

import re

from tests.hooked import VERSION, Event, Forks, Monitor, Script, outcome

STEP = "Counted.step" if VERSION >= (3, 11) else "step"
"""The name of a method: older Pythons do not keep its class with it."""

FUNCTIONS = """
import functools, sys
import tensorflow as tf

@tf.function
def counted(x, n):
    return x + n

class Model(tf.Module):
    @tf.function
    def __call__(self, x):
        return x * 2

def step(scale, x):
    return x * scale

@tf.function(jit_compile=True)
def compiled(x):
    return x + 1

for n in range(30):
    counted(tf.ones(3), n // 2)
for _ in range(500):
    counted(tf.ones(3), 1)
for n in range(9):
    counted(tf.ones(3), -n)
model, partial = Model(), tf.function(functools.partial(step, 2.0))
for _ in range(40):
    model(tf.ones(3))
    partial(tf.ones(3))
compiled(tf.ones(3))
for _ in range(5):
    made_anew = tf.function(lambda x: x + 1)
    made_anew(tf.ones(3))
print("ready", flush=True)
sys.stdin.readline()
"""


def newest(monitor: Monitor) -> dict[str, list[object]]:
    return {name: counts for name, *counts in monitor.of("functions")[-1]["functions"]}


def test_calls_and_tracings(monitor: Monitor, script: Script, forks: Forks) -> None:
    path = script(FUNCTIONS)
    process = forks.start(monitor, path)

    def complete(event: Event) -> bool:
        return event["type"] == "functions" and any(name == "<lambda>" for name, *_ in event["functions"])

    monitor.wait_for(complete)
    assert outcome(process, "\n")[:2] == (0, "ready\n")
    lines = FUNCTIONS.splitlines()

    def line(text: str) -> int:
        return next(number for number, each in enumerate(lines, 1) if text in each)

    found = {name.rpartition(".")[2]: counts for name, counts in newest(monitor).items()}
    # counted: 15 values twice, one of them 500 times more, then nine values (0 to -8) of which only 0 is not new.
    # So 30 + 500 + 9 calls, and 15 + 8 tracings. The first tracing of a function is not compared with another.
    assert found["counted"] == [539, 23, path, line("def counted") - 1, 1, 1, [["n", "-7", "-8", 22]], False]
    assert found["__call__"] == [40, 1, path, line("def __call__") - 1, 1, 1, [], False]
    assert found["step"] == [40, 1, path, line("def step"), 1, 1, [], False]
    assert found["<lambda>"] == [5, 5, path, line("lambda"), 1, 5, [], False]
    assert found["compiled"] == [1, 1, path, line("def compiled") - 1, 1, 1, [], True]


CHANGING = """
import collections, sys
import tensorflow as tf

class Settings:
    def __repr__(self):
        raise SystemExit("asked")

class Counted(tf.Module):
    @tf.function
    def step(self, x):
        return x

Pair = collections.namedtuple("Pair", "left right")

@tf.function
def shapes(x, y=2.0):
    return x

@tf.function
def dtypes(x):
    return x

@tf.function
def values(x, n, name="a"):
    return x

@tf.function
def training(x, training=False):
    return x

@tf.function
def objects(x, settings):
    return x

@tf.function
def batches(batch, pair, *more):
    return batch["x"]

@tf.function
def ranks(x):
    return x

@tf.function
def makes(x):
    if not kept:
        kept.append(tf.Variable(1.0))
    return x * kept[0]

@tf.function(reduce_retracing=True)
def general(x):
    return x

@tf.function
def datasets(rows):
    return next(iter(rows))

kept = []
for size in (32, 31):
    shapes(tf.ones([size, 10]))
    general(tf.ones([size]))
for dtype in (tf.float32, tf.float16):
    dtypes(tf.ones([3], dtype))
for n in (3, 4):
    values(tf.ones([3]), n, name="ab"[n - 3])
for flag in (True, False):
    training(tf.ones([3]), training=flag)
for _ in range(3):
    objects(tf.ones([3]), Settings())
for size in (4, 5):
    batches({"x": tf.ones([size]), "y": 1}, Pair(tf.ones([2]), [tf.ones([size]), None]), size)
ranks(tf.ones([3])), ranks(tf.ones([3, 1]))
makes(tf.ones([3]))
for size in (6, 7):
    datasets(tf.data.Dataset.from_tensor_slices({"a": tf.ones([9, size])}))
for _ in range(2):
    Counted().step(tf.ones([3]))
print("ready", flush=True)
sys.stdin.readline()
"""


def test_which_argument_changed_and_how(monitor: Monitor, script: Script, forks: Forks) -> None:
    end = forks.run(monitor, script(CHANGING))
    assert end[:2] == (0, "ready\n"), end
    changed = {name: counts[-2] for name, counts in newest(monitor).items()}
    assert changed == {
        "shapes": [["x", "float32[32,10]", "float32[31,10]", 1]],
        "general": [["x", "float32[32]", "float32[None]", 1]],
        "dtypes": [["x", "float32[3]", "float16[3]", 1]],
        "values": [["n", "3", "4", 1], ["name", "'a'", "'b'", 1]],
        "training": [["training", "True", "False", 1]],
        "objects": [["settings", "<Settings>", "<Settings>", 2]],
        "batches": [
            ["batch['x']", "float32[4]", "float32[5]", 1],
            ["pair.right[0]", "float32[4]", "float32[5]", 1],
            ["more_0", "4", "5", 1],
        ],
        "ranks": [["x", "float32[3]", "float32[3,1]", 1]],
        "makes": [],
        "datasets": [["rows['a']", "float32[6]", "float32[7]", 1]],
        STEP: [],
    }
    anew = {name: counts[-3] for name, counts in newest(monitor).items()}
    assert anew[STEP] == 2 and anew["shapes"] == 1


KERAS = """
import keras, tensorflow as tf
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", steps_per_execution={steps})
model.fit(tf.ones((64, 4)), tf.ones((64, 1)), batch_size=4, epochs=3, verbose=0)
"""


def test_keras_says_how_many_steps_a_call_takes(monitor: Monitor, script: Script, forks: Forks) -> None:
    assert forks.run(monitor, script(KERAS.format(steps=4))).code == 0
    ((calls, traces, file, _, steps, *_),) = newest(monitor).values()
    assert (calls, steps) == (12, 4) and isinstance(traces, int) and traces <= 2
    assert str(file).endswith("trainer.py")


def test_retracing_warns_as_without_us(monitor: Monitor, script: Script, forks: Forks) -> None:
    source = """
import inspect, logging, sys
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function as made

class Shown(logging.Handler):
    def emit(self, record):
        print(record.filename, record.lineno, record.funcName, record.getMessage().partition(" at 0x")[0])

tf.get_logger().addHandler(Shown())

@tf.function
def retraced(x):
    if not isinstance(x, int):
        raise ValueError("mine")
    return tf.constant(x)

for n in range(7):
    retraced(n)
print(inspect.signature(type(made._frequent_tracing_detector_manager).called_with_tracing))
retraced("no number")
"""
    bare, hooked = forks.both(monitor, script(source))
    bare, hooked = (each._replace(err=re.sub(r"generated_file\w+", "", each.err)) for each in (bare, hooked))
    assert bare == hooked and "out of the last" in bare.out and bare.code == 1
