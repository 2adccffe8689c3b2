"""The phases of a real training are told with their peaks, and the script cannot tell the difference."""

from collections.abc import Callable
from itertools import pairwise

from tests.hooked import Forks, Monitor

MIB = 1 << 20

TRAINING = """
import inspect, sys, time, traceback
import numpy as np
import tensorflow as tf
import keras

Trace = tf.profiler.experimental.Trace
print(inspect.signature(keras.Model.fit), inspect.signature(Trace), Trace, Trace.__doc__)
print(inspect.signature(keras.src.backend.tensorflow.trainer.TFEpochIterator.catch_stop_iteration))

class Slow(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        print(epoch, sorted({frame.name for frame in traceback.extract_stack()}))
    def on_test_batch_end(self, batch, logs=None):
        time.sleep(0.2)
    on_train_batch_end = on_predict_batch_end = on_test_batch_end

class Late(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        time.sleep(0.5)

model = keras.Sequential([keras.layers.Embedding(64, 8), keras.layers.Flatten(), keras.layers.Dense(1)])
model.compile("sgd", "mse", jit_compile=False)
x, y = np.ones((4, 3), "int32"), np.zeros((4, 1))
model.fit(x, y, batch_size=2, epochs=2, verbose=0, validation_data=(x, y), callbacks=[Slow()])
model.predict(x, verbose=0, callbacks=[Slow()])
with Trace("a block") as block:
    tensor = tf.ones([16, 1 << 18])
    time.sleep(0.4)
    del tensor
for step in range(3):
    with Trace("step", step_num=step, _r=1):
        time.sleep(0.3)
with Trace("short"):
    pass
try:
    model.fit(x + 99, y, verbose=0, callbacks=[Late()])
except tf.errors.InvalidArgumentError as error:
    print("".join(traceback.format_exception(error)))
try:
    Trace()
except TypeError as error:
    print("".join(traceback.format_exception(error)))
"""


def test_epochs_evaluations_predictions_and_blocks(
    monitor: Monitor, script: Callable[[str], str], forks: Forks
) -> None:
    bare, told = forks.both(monitor, script(TRAINING))
    assert told.code == 0, told.err
    assert told == bare
    assert "tfmemtop" not in told.out and "is not in [0, 64)" in told.out
    ended = [phase for phase in monitor.of("phase") if phase["ended"] is not None]
    # The shortest block has no reading, unless the machine is busy.
    names = [(phase["name"], phase["epoch"]) for phase in ended if phase["name"] != "short"]
    assert names == [
        ("fit", 1), ("evaluate", None), ("fit", 2), ("evaluate", None), ("predict", None), ("a block", None), ("fit", 1)
    ]  # fmt: skip
    assert all(before["ended"] <= after["began"] for before, after in pairwise(ended))
    peaks = {phase["name"]: phase["peaks"]["CPU:0"] for phase in ended}
    assert 16 * MIB <= peaks["a block"] < 18 * MIB and peaks["fit"] < 2 * MIB


LOOPING = """
import time
import tensorflow as tf
tf.ones(3)
for number in range(30):
    with tf.profiler.experimental.Trace(f"block {number}"):
        time.sleep(0.06)
with tf.profiler.experimental.Trace("the last"):
    time.sleep(0.2)
"""


def test_a_block_in_a_loop_is_soon_not_told(monitor: Monitor, script: Callable[[str], str], forks: Forks) -> None:
    assert forks.run(monitor, script(LOOPING)).code == 0
    told = {phase["number"]: phase for phase in monitor.of("phase")}
    *blocks, last = told.values()
    assert last["name"] == "the last" and blocks[0]["name"] == "block 0"
    for before, block in enumerate(blocks):
        assert block["ended"] - block["began"] >= 0.1 * before
