"""A function that XLA compiles, for three shapes."""

import tensorflow as tf


@tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
def step(x: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    for _ in range(4):
        x = tf.nn.relu(tf.matmul(x, weight)) + tf.sin(x)
    return tf.reduce_sum(x)


weight = tf.ones([512, 512])
for rows in (512, 4096, 16_384):
    for _ in range(10):
        step(tf.ones([rows, 512]), weight)
print("done")
