# each task adds a penalty, a function that has captured the old weights, as in elastic weight consolidation
import os

import tensorflow as tf

w = tf.Variable(tf.random.normal([1024, 1024]) * 0.01)
penalties = []


def penalty(old, importance):
    return lambda: tf.reduce_sum(importance * tf.square(w - old))


for task in range(80):
    for _ in range(3):
        x = tf.random.normal([64, 1024])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ w - x))
        gradient = tape.gradient(loss, w)
        w.assign_sub(0.1 * gradient)
    penalties.append(penalty(tf.identity(w), tf.square(gradient)))
    del penalties[: -int(os.environ.get("TASKS", "1000"))]
    print("task", task, float(loss), float(penalties[-1]()), flush=True)
