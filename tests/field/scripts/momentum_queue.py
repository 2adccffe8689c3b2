"""Momentum contrast: a queue of negative keys, of which the oldest should be dropped. The argument is its length."""

import sys

import tensorflow as tf


def encoder():
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((32, 32, 3)),
            tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(256),
        ]
    )


class Contrast:
    def __init__(self, length):
        self.query, self.key, self.length = encoder(), encoder(), length
        self.negatives = tf.math.l2_normalize(tf.random.normal([512, 256]), -1)
        self.optimizer = tf.keras.optimizers.SGD(0.03)

    def step(self, images):
        keys = tf.math.l2_normalize(self.key(tf.image.flip_left_right(images)), -1)
        variables = self.query.trainable_variables
        with tf.GradientTape() as tape:
            found = tf.math.l2_normalize(self.query(images), -1)
            alike = tf.reduce_sum(found * keys, -1, keepdims=True)
            logits = tf.concat([alike, tf.matmul(found, self.negatives, transpose_b=True)], 1) / 0.07
            labels = tf.zeros(len(images), tf.int32)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        for slow, fast in zip(self.key.trainable_variables, variables, strict=True):
            slow.assign(0.99 * slow + 0.01 * fast)
        self.negatives = tf.concat([self.negatives, keys], 0)[-self.length :]
        return loss


contrast = Contrast(int(sys.argv[1]))
for step in range(220):
    loss = contrast.step(tf.random.uniform([128, 32, 32, 3]))
    if step % 20 == 0:
        print(f"step {step}: loss {float(loss):.3f}", flush=True)
