"""A training loop for several ranks: each makes the same steps, but two ranks differ from the others.

From step 60 on, rank 2 keeps 96 MiB more. Rank 3 takes 40 ms longer for each step.
"""

import os
import time

import tensorflow as tf

STEPS = 150
RANK = int(os.environ["SLURM_PROCID"])

weights = tf.Variable(tf.random.normal((1024, 1024)))
kept = []


@tf.function  # type: ignore[untyped-decorator]
def step(batch: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch @ weights))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for number in range(STEPS):
    step(tf.random.normal((64, 1024)))
    if RANK == 2 and number == 60:
        kept.append(tf.zeros((24, 1024, 1024)))
    time.sleep(0.1 if RANK == 3 else 0.06)
