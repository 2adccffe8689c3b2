"""Compile with XLA: a function for two shapes, a Keras model, and the function once more in a second process.

For each shape, the script prints by how many bytes the allocator's peak rises above what is in use before the call.
"""

import os
import subprocess
import sys

import tensorflow as tf

weights = tf.Variable(tf.ones((512, 512)))
child = sys.argv[1:] == ["child"]


@tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
def refine(x: tf.Tensor) -> tf.Tensor:
    with tf.name_scope("refine"):
        y = tf.sort(tf.tanh(x @ weights))
        return tf.reduce_sum(y @ weights + tf.sort(y * 2.0, direction="DESCENDING"))


for rows in (64,) if child else (256, 1024):
    x = tf.ones((rows, 512))
    refine(x)
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    tf.config.experimental.reset_memory_stats("CPU:0")
    refine(x)
    print("rise", rows, tf.config.experimental.get_memory_info("CPU:0")["peak"] - before, flush=True)

if not child:
    import keras

    layers = [keras.Input((300,)), keras.layers.Dense(2000, activation="relu", name="wide"), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile("adam", "mse", jit_compile=True)
    model.train_on_batch(tf.ones((1000, 300)), tf.ones((1000, 1)))
    without_keras = os.environ | {"TF_USE_LEGACY_KERAS": "1"}  # so that the import of TensorFlow is quicker
    subprocess.run([sys.executable, __file__, "child"], check=True, env=without_keras)
    print("flags", os.environ["XLA_FLAGS"], flush=True)
