# the last layer and the labels have different sizes
import numpy as np
import tensorflow as tf

x, y = np.random.rand(512, 128).astype("float32"), np.random.rand(512, 12).astype("float32")
w = tf.Variable(tf.random.normal([128, 10]))
for i in range(0, 512, 64):
    loss = tf.reduce_mean(tf.square(x[i : i + 64] @ w - y[i : i + 64]))
