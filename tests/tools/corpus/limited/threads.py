"""Four threads at once, each with its own sizes."""

import threading

import tensorflow as tf


def work(number: int) -> None:
    weight = tf.Variable(tf.ones([128 * number, 128 * number]))
    for step in range(60):
        x = tf.ones([256 * number * (1 + step % 4), 128 * number])
        weight.assign_sub(1e-6 * tf.matmul(x, tf.matmul(x, weight), transpose_a=True))


threads = [threading.Thread(target=work, args=[number]) for number in (1, 2, 3, 4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
