"""A training that leaves the machine mostly idle, until it is killed: a step, then a pause."""

import time

import tensorflow as tf

weights = tf.Variable(tf.random.uniform((256, 256)))
step = 0
while True:
    weights.assign(tf.matmul(weights, weights) / 128.0)
    step += 1
    if step % 10 == 0:
        print(f"\rstep {step}", end="", flush=True)
    time.sleep(0.1)
