# meta-learning: the outer tape records an inner loop of N gradient steps on the weights
import sys

import tensorflow as tf

w = tf.Variable(tf.random.normal([1024, 1024]) * 0.01)
x, y = tf.random.normal([64, 1024]), tf.random.normal([64, 1024])
for task in range(3):
    with tf.GradientTape() as outer:
        fast = tf.convert_to_tensor(w)
        for step in range(int(sys.argv[1])):
            with tf.GradientTape() as inner:
                inner.watch(fast)
                loss = tf.reduce_mean(tf.square(tf.tanh(x @ fast) - y))
            fast = fast - 0.1 * inner.gradient(loss, fast)
        loss = tf.reduce_mean(tf.square(tf.tanh(x @ fast) - y))
    w.assign_sub(0.01 * outer.gradient(loss, w))
    print("task", task, float(loss), flush=True)
