# after tensorflow#20062: the trainer keeps the loss of each example as a tensor, or as numbers
import sys

import tensorflow as tf


class Trainer:
    losses = []

    def __init__(self):
        self.model = tf.keras.Sequential([tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(64)])
        self.optimizer = tf.keras.optimizers.SGD(0.01)

    def step(self, x, y):
        with tf.GradientTape() as tape:
            errors = tf.square(self.model(x) - y)
            loss = tf.reduce_mean(errors)
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.losses.append(errors if sys.argv[1] == "tensors" else errors.numpy().mean())


trainer = Trainer()
for i in range(400):
    trainer.step(tf.random.normal([4096, 64]), tf.random.normal([4096, 64]))
    if i % 50 == 0:
        print("step", i, flush=True)
