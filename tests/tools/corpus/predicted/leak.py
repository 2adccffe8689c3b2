"""Keeps the activations of each step, as a script that leaks does."""

import tensorflow as tf

weight = tf.Variable(tf.random.normal((1024, 1024)))
kept = []
for _ in range(40):
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(tf.matmul(tf.random.normal((600, 1024)), weight))
        loss = tf.reduce_sum(hidden**2)
    weight.assign_sub(1e-6 * tape.gradient(loss, weight))
    kept.append(hidden)
print("done")
