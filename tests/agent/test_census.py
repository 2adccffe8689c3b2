"""The census reports every variable of a real model, exact to the byte, and does not affect the model."""

import json

from tests.hooked import OPERATIONS_ELSEWHERE, Event, Forks, Monitor, Process, Script, line, outcome, typed

TRAINING = (
    """
import gc, json, sys, threading, weakref
import keras
import tensorflow as tf
"""
    + OPERATIONS_ELSEWHERE
    + """
model = keras.Sequential([keras.layers.Input((32,)), keras.layers.Dense(64, name="wide"),
                          keras.layers.BatchNormalization(), keras.layers.Dropout(0.1), keras.layers.Dense(1)])
model.compile("adam", "mse", metrics=["mae"])
model.fit(tf.ones((64, 32)), tf.ones((64, 1)), verbose=0)
own = tf.Variable(tf.zeros([1000, 1000], tf.float16), name="own")
own.assign_add(tf.ones_like(own))

def size(variables):
    return sum(variable.numpy().nbytes for variable in variables)

print(json.dumps({"variables": size(model.variables) + own.numpy().nbytes,
                  "optimizer": size(model.optimizer.variables), "metrics": size(model.metrics_variables)}), flush=True)
sys.stdin.readline()
print(len(elsewhere), flush=True)
kept = [weakref.ref(each.value) for each in model.variables + model.optimizer.variables]
del model
keras.backend.clear_session()
gc.collect()
print(sum(reference() is not None for reference in kept), flush=True)
sys.stdin.readline()
"""
)


def ask(monitor: Monitor, process: Process) -> Event:
    """Return a new census of the variables alone."""
    known = len(monitor.of("census"))
    monitor.say(process.pid, {"do": "census"})
    monitor.wait_for(lambda _: sum(event["type"] == "census" for event in monitor.events) > known)
    return monitor.of("census")[-1]


def test_a_model_to_the_byte(monitor: Monitor, script: Script, forks: Forks) -> None:
    process = forks.start(monitor, script(TRAINING))
    printed = json.loads(line(process))

    census = ask(monitor, process)
    assert census["kinds"] == {"CPU:0": printed}
    largest = census["largest"]
    assert isinstance(largest, list) and largest[0] == ["own", "variables", [1000, 1000], "float16", "CPU:0", 2_000_000]
    assert next(name for name, kind, *_ in largest[1:] if kind == "variables" and "wide" in name).endswith(
        "wide/kernel"
    )
    others = census["others"]
    assert isinstance(others, list) and all(size >= 1024 for *_, size in others)
    slots = {name for name, kind, *_ in [*largest, *others] if kind == "optimizer"}
    assert {"adam/sequential_wide_kernel_momentum", "adam/sequential_wide_kernel_velocity"} <= slots
    typed(process)
    assert line(process) == "0", "operations that are not the script's"
    assert line(process) == "0", "variables kept alive"
    assert ask(monitor, process)["kinds"]["CPU:0"]["variables"] < printed["variables"]
    assert outcome(process, "\n").code == 0


def test_variables_are_made_as_without_us(monitor: Monitor, script: Script, forks: Forks) -> None:
    source = """
import copy, inspect, pickle, tempfile, traceback
import tensorflow as tf
from tensorflow.python.ops import resource_variable_ops as made

variable = tf.Variable([1.0, 2.0], name="one")
print(variable, copy.copy(variable), copy.deepcopy(variable), pickle.loads(pickle.dumps(variable)))
print(inspect.signature(tf.Variable), inspect.signature(made.ResourceVariable.__init__), made.ResourceVariable.__mro__)

class Own(made.ResourceVariable):
    pass

print(Own(3.0), tf.nest.map_structure(lambda each: each, variable, expand_composites=True))
for wrong in (lambda: tf.Variable(lambda: 1 / 0), lambda: tf.Variable(), lambda: tf.Variable([1], shape=[2])):
    try:
        wrong()
    except Exception:
        traceback.print_exc()

@tf.function
def lazily():
    if not kept:
        kept.append(tf.Variable(5.0))
    return kept[0]

kept = []
print(lazily())
module = tf.Module()
module.variable = variable
with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(module, folder)
    print(tf.saved_model.load(folder).variable)
with tf.Graph().as_default():
    graphs = tf.compat.v1.get_variable("graphs", [2, 2])
    print(graphs, graphs.op.traceback[-1].filename.endswith("train.py"))
"""
    bare, hooked = forks.both(monitor, script(source))
    assert bare == hooked and bare.code == 0


SESSION = """
import sys
import tensorflow as tf
v1 = tf.compat.v1
v1.disable_v2_behavior()
with v1.variable_scope("encoder"):
    w = v1.get_variable("w", (512, 512))
    resource = v1.get_variable("r", (256, 512), use_resource=True)
loss = tf.reduce_sum(tf.matmul(resource, w))
train = v1.train.AdamOptimizer().minimize(loss)
with v1.Graph().as_default():
    never = v1.get_variable("never", (900, 900))
session = v1.Session()
session.run(v1.global_variables_initializer())
session.run(train)
print("trained", flush=True)
sys.stdin.readline()
session.close()
print("closed", flush=True)
sys.stdin.readline()
"""


def test_variables_of_a_session_while_it_lasts(monitor: Monitor, script: Script, forks: Forks) -> None:
    """The census has resource and reference variables, and an optimizer's slots.

    It has no variable of a graph that never ran.
    """
    process = forks.start(monitor, script(SESSION))
    assert line(process) == "trained"

    w, r = 4 * 512 * 512, 4 * 256 * 512
    census = ask(monitor, process)
    assert census["kinds"] == {"CPU:0": {"variables": w + r, "optimizer": 2 * (w + r) + 8}}
    largest = census["largest"]
    assert isinstance(largest, list)
    assert sorted(one[:2] for one in largest if one[5] == w) == [
        ["encoder/w", "variables"],
        ["encoder/w/Adam", "optimizer"],
        ["encoder/w/Adam_1", "optimizer"],
    ]
    typed(process)
    assert line(process) == "closed"
    assert ask(monitor, process)["kinds"] == {}
    assert outcome(process, "\n").code == 0
