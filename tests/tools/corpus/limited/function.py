"""A loop of a tf.function with a peak of a few dozen MiB: pieces of 8 MiB, in regions that double from 2 MiB on."""

import tensorflow as tf


@tf.function  # type: ignore[untyped-decorator]
def step(x: tf.Tensor) -> tf.Tensor:
    wide = tf.tile(x, [2, 1])
    return tf.reduce_sum(tf.sort(wide * 2.0) + wide)


for _ in range(100):
    step(tf.ones([1024, 2048]))
print("done")
