# gradients of 64 small batches in a list of a trainer that is local to main, or added up at once
import sys

import keras
import numpy as np
import tensorflow as tf

ACCUM_STEPS = 64


class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.optimizer = keras.optimizers.SGD(lr)
        self.loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.pending = []

    def micro_step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss_fn(y, self.model(x, training=True))
        gradients = tape.gradient(loss, self.model.trainable_variables)
        if sys.argv[1] == "collected" or not self.pending:
            self.pending.append(gradients)
        else:
            self.pending = [[a + g for a, g in zip(self.pending[0], gradients)]]
        return float(loss)

    def update(self):
        mean = [tf.add_n(parts) / ACCUM_STEPS for parts in zip(*self.pending)]
        self.optimizer.apply_gradients(zip(mean, self.model.trainable_variables))
        self.pending.clear()


def stream(batch=16):
    rng = np.random.default_rng(5)
    while True:
        yield rng.standard_normal((batch, 784), dtype=np.float32), rng.integers(0, 10, batch)


def main():
    net = keras.Sequential(
        [
            keras.Input((784,)),
            keras.layers.Dense(2048, "relu"),
            keras.layers.Dense(1024, "relu"),
            keras.layers.Dense(10),
        ]
    )
    trainer = Trainer(net)
    for i, (x, y) in enumerate(stream(), 1):
        loss = trainer.micro_step(x, y)
        if i % ACCUM_STEPS == 0:
            trainer.update()
            print("update", i // ACCUM_STEPS, loss, flush=True)
        if i == 3 * ACCUM_STEPS:
            break


if __name__ == "__main__":
    main()
