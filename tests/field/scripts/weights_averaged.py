# a callback keeps the weights of each epoch, to average them at the end: as tensors, or as arrays
import dataclasses
import sys

import numpy as np
import tensorflow as tf


@dataclasses.dataclass
class Snapshot:
    epoch: int
    weights: list


class WeightAveraging(tf.keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.snapshots = []

    def on_epoch_end(self, epoch, logs=None):
        copies = [tf.identity(one) for one in self.model.trainable_variables]
        self.snapshots.append(Snapshot(epoch, copies if sys.argv[1] == "tensors" else [one.numpy() for one in copies]))

    def on_train_end(self, logs=None):
        for index, variable in enumerate(self.model.trainable_variables):
            variable.assign(np.mean([one.weights[index] for one in self.snapshots], axis=0))


def main():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(512, 500)).astype("float32"), rng.normal(size=(512, 10)).astype("float32")
    model = tf.keras.Sequential(
        [
            tf.keras.Input([500]),
            tf.keras.layers.Dense(1000, activation="relu"),
            tf.keras.layers.Dense(800, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile(optimizer=tf.keras.optimizers.SGD(0.01), loss="mse")
    model.fit(x, y, epochs=60, batch_size=32, verbose=2, callbacks=[WeightAveraging()])


main()
