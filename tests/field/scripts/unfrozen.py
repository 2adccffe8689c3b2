# fine-tuning: the head is trained first, then all blocks, with gradients and Adam's copies for each of their weights
import os

import tensorflow as tf

blocks = tf.keras.Sequential([tf.keras.layers.Dense(2400, activation="relu") for _ in range(4)])
head = tf.keras.layers.Dense(10)


def loss_of(x):
    return tf.reduce_mean(tf.square(head(blocks(x))))


def train(variables, optimizer, steps):
    for i in range(steps):
        with tf.GradientTape() as tape:
            loss = loss_of(tf.random.normal([32, 2400]))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        print("step", i, float(loss), flush=True)


loss_of(tf.zeros([1, 2400]))
train(head.trainable_variables, tf.keras.optimizers.Adam(), 20)
last = int(os.environ.get("UNFROZEN", "4"))
unfrozen = [v for block in blocks.layers[-last:] for v in block.trainable_variables]
train(unfrozen + head.trainable_variables, tf.keras.optimizers.Adam(), 20)
