"""Small tensors as in small_tensor, with a gradient tape: how much memory do gradients add?"""

import tensorflow as tf
from seen import figures, tell

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[:1], "GPU")
    tf.config.experimental.set_memory_growth(gpus[0], True)
x = tf.random.normal([100, 100])
weights, bias = tf.Variable(tf.random.normal([100, 100])), tf.Variable(tf.zeros([100]))
before = figures()
with tf.GradientTape() as tape:
    y = tf.matmul(x, weights) + bias
    loss = tf.reduce_sum((y - x) ** 2)
gradients = tape.gradient(loss, [weights, bias])
tell(gpus=len(gpus), before=before, gradients=len(gradients))
