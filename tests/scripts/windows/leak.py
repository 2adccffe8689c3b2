"""A training that keeps the output of each step."""

import time

import tensorflow as tf

weight = tf.Variable(tf.random.normal([300, 500]), name="weight")
history = []


@tf.function  # type: ignore[untyped-decorator]
def step(batch: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(tf.matmul(batch, weight, name="layer"))
        loss = 0.5 * tf.reduce_mean(hidden)
    weight.assign_sub(1e-9 * tape.gradient(loss, weight))
    return hidden


for _ in range(1000):
    history.append(step(tf.random.normal([200, 300])))
    time.sleep(0.05)
