# a tf.function gets the epoch's number as a Python number, so it is traced anew, each time with the table as a constant
import sys

import numpy as np
import tensorflow as tf

table = np.random.rand(2000, 2000).astype("float32")  # 15 MiB
w = tf.Variable(tf.ones([2000]))


@tf.function
def step(epoch):
    rate = 0.1 / (1.0 + tf.cast(epoch, tf.float32))
    w.assign_sub(rate * tf.linalg.matvec(table, w) / 2000)


for epoch in range(30):
    step(epoch if sys.argv[1] == "number" else tf.constant(epoch))
    print("epoch", epoch, flush=True)
