# "tf.function defined in a loop": each epoch's new function captures a big array as a constant
import sys

import numpy as np
import tensorflow as tf

table = np.random.rand(4_000_000).astype("float32")  # 15 MiB
w = tf.Variable(1.0)
steps = []
for epoch in range(60):
    if not steps or sys.argv[1] == "each-epoch":

        @tf.function
        def step():
            return tf.reduce_sum(tf.constant(table) * w)

        steps.append(step)
    steps[-1]()
    steps[-1]()
    print("epoch", epoch, flush=True)
