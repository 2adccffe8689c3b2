# "GradientTape OOM in an eager loop": a rollout of 1000 steps, with one tape for each stretch of N steps
import sys

import tensorflow as tf

stretch = int(sys.argv[1])
dense = tf.keras.layers.Dense(1024, activation="tanh")
x = tf.random.normal([256, 1024])
dense(x)
for begin in range(0, 1000, stretch):
    with tf.GradientTape(persistent=True) as tape:
        loss = 0.0
        for t in range(begin, begin + stretch):
            x = dense(x)
            loss += tf.reduce_mean(x)
            if t % 50 == 0:
                print("t", t, flush=True)
    gradient = tape.gradient(loss, dense.trainable_variables)
    x = tf.stop_gradient(x)
