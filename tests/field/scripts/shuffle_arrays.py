# after tensorflow#44176, #54299: a shuffle buffer of arrays, as most generators yield them
import sys

import numpy as np
import tensorflow as tf


def examples():
    for i in range(3000):
        yield np.full((300, 300, 3), i % 255, np.float32), i % 10


signature = (tf.TensorSpec([300, 300, 3]), tf.TensorSpec([], tf.int32))
data = tf.data.Dataset.from_generator(examples, output_signature=signature)
data = data.shuffle(int(sys.argv[1])).batch(16).prefetch(2)
conv = tf.keras.layers.Conv2D(4, 3)


@tf.function
def step(x):
    return tf.reduce_mean(conv(x))


for i, (x, _) in enumerate(data.take(60)):
    step(x)
    if i % 10 == 0:
        print(i, flush=True)
