"""Compile with XLA: a function for two shapes, and once more in a second process.

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
    subprocess.run([sys.executable, __file__, "child"], check=True)
    print("flags", os.environ["XLA_FLAGS"], flush=True)
