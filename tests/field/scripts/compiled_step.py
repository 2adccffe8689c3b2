# a compiled function sorts what it computes: XLA's buffer grows with the batch
import os

import tensorflow as tf

w = tf.Variable(tf.random.normal([512, 2048]))


@tf.function(jit_compile=True)
def step(x):
    y = tf.sort(tf.tanh(x @ w))
    return tf.reduce_mean(tf.sort(y * tf.reverse(y, [1])) + tf.sort(y + 1.0, direction="DESCENDING"))


for i in range(8):
    print("step", i, float(step(tf.random.normal([int(os.environ.get("BATCH", "12000")), 512]))), flush=True)
