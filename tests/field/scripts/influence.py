"""Finds the most influential weights of a small classifier, by the Jacobian of its outputs for some examples."""

import sys

import tensorflow as tf


class Net(tf.Module):
    def __init__(self):
        self.w1 = tf.Variable(tf.random.normal([784, 128]) * 0.05, name="w1")
        self.w2 = tf.Variable(tf.random.normal([128, 20]) * 0.05, name="w2")

    def __call__(self, x):
        return tf.nn.tanh(x @ self.w1) @ self.w2


@tf.function
def train_step(net, x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, net(x)))
    for variable, gradient in zip(net.trainable_variables, tape.gradient(loss, net.trainable_variables), strict=True):
        variable.assign_sub(0.1 * gradient)
    return loss


def influence(net, x):
    with tf.GradientTape() as tape:
        outputs = net(x)
    jacobian = tape.jacobian(outputs, net.w1)
    return tf.reduce_mean(tf.square(jacobian), axis=[0, 1])


net = Net()
x, y = tf.random.uniform([1024, 784]), tf.random.uniform([1024], maxval=20, dtype=tf.int32)
for start in range(0, 1024, 64):
    train_step(net, x[start : start + 64], y[start : start + 64])
examples = int(sys.argv[1])
parts = [influence(net, x[start : start + examples]) for start in range(0, 64, examples)]
print("most influential", tf.math.top_k(tf.reshape(tf.add_n(parts), [-1]), 5).indices.numpy())
