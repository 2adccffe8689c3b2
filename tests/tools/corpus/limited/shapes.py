"""Batches of random sizes, with or without a seed, through one function that takes them all."""

import random
import sys

import tensorflow as tf

random.seed(*map(int, sys.argv[1:]))
weight = tf.Variable(tf.ones([512, 512]))


@tf.function(input_signature=[tf.TensorSpec([None, 512], tf.float32)])  # type: ignore[untyped-decorator]
def step(x: tf.Tensor) -> None:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.relu(tf.matmul(tf.nn.relu(tf.matmul(x, weight)), weight)))
    weight.assign_sub(1e-3 * tape.gradient(loss, weight))


for _ in range(80):
    step(tf.ones([random.randint(1, 23_500), 512]))
step(tf.ones([23_500, 512]))
print("done")
