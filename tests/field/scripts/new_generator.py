# after tensorflow#37653, #123530: a Dataset.from_generator made anew in each epoch keeps the arrays of its closure
import sys
import time

import numpy as np
import tensorflow as tf

w = tf.Variable(tf.random.normal([1000, 10]))
shape = tf.TensorSpec([400, 1000])


@tf.function
def step(x):
    return tf.reduce_sum(x @ w)


def batches(data):
    for i in range(0, 4000, 400):
        yield data[i : i + 400]


current = []
once = tf.data.Dataset.from_generator(lambda: batches(current[-1]), output_signature=shape)
for epoch in range(100):
    data = np.random.rand(4000, 1000).astype("float32")  # 15 MiB of host memory
    current[:] = [data]
    anew = sys.argv[1] == "anew"
    for x in tf.data.Dataset.from_generator(lambda d=data: batches(d), output_signature=shape) if anew else once:
        step(x)
    if epoch % 10 == 0:
        print("epoch", epoch, flush=True)
    time.sleep(0.2)
