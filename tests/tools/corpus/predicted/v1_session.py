"""A graph of TensorFlow 1, run in a session."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [None, 1024])
hidden = tf.nn.relu(tf.matmul(x, tf.get_variable("first", [1024, 2048])))
loss = tf.reduce_mean(tf.matmul(hidden, tf.get_variable("second", [2048, 512])) ** 2)
train = tf.train.AdamOptimizer(1e-4).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for rows in (200, 1500, 900, 3000) * 4:
        session.run(train, {x: np.ones((rows, 1024), np.float32)})
print("done")
