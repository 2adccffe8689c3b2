"""Tens of thousands of small tensors, some of which are replaced."""

import tensorflow as tf

kept = [tf.zeros([1 + index % 300]) for index in range(30_000)]
for index in range(0, 30_000, 3):
    kept[index] = tf.ones([1 + (index * 7) % 500])
print("done")
