"""Little memory for a while, and one large tensor at the very end."""

import tensorflow as tf

x = tf.ones([256, 256])
for _ in range(300):
    x = tf.matmul(x, x) / 256.0
tf.zeros([300, 1 << 18])
print("done")
