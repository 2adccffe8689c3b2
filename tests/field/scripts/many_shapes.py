# batches of many lengths: a tf.function without reduce_retracing is traced for each
import os

import tensorflow as tf

embedding, dense = tf.keras.layers.Embedding(1000, 64), tf.keras.layers.Dense(1)
pad = os.environ.get("PAD") == "1"


@tf.function
def step(ids):
    return tf.reduce_mean(dense(embedding(ids)))


for i in range(80):
    length = 20 + i
    ids = tf.random.uniform([16, length], 0, 1000, tf.int32)
    mean = step(tf.pad(ids, [[0, 0], [0, 128 - length]]) if pad else ids)
    if i % 10 == 0:
        print("batch", i, float(mean), flush=True)
