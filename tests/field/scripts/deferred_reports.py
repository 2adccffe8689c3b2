# reports for the end of a training, whose partials hold a tensor of each step, or an array of 32 numbers
import os
import sys
from functools import partial
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf


class Deferred:
    """Work for after the training, so that writing reports does not slow the steps."""

    def __init__(self):
        self._jobs = []

    def add(self, fn):
        self._jobs.append(fn)

    def run_all(self):
        for job in self._jobs:
            job()


def write_histogram(step, activations, path):
    with path.open("a") as f:
        f.write(f"{step} {np.ravel(activations)[:32].tolist()}\n")


def main():
    deferred = Deferred()
    body = keras.Sequential([keras.Input((256,)), keras.layers.Dense(2048, "relu"), keras.layers.Dense(2048, "relu")])
    head = keras.layers.Dense(1)
    head.build((None, 2048))
    weights = body.trainable_variables + head.trainable_variables
    opt = keras.optimizers.SGD(1e-3)
    for step in range(160):
        x = tf.random.normal((512, 256))
        with tf.GradientTape() as tape:
            features = body(x)
            loss = tf.reduce_mean(head(features) ** 2)
        opt.apply_gradients(zip(tape.gradient(loss, weights), weights))
        told = features if sys.argv[1] == "tensors" else np.histogram(features.numpy(), 32)[0]
        deferred.add(partial(write_histogram, step, told, path=Path(os.devnull)))
        if step % 20 == 0:
            print(step, float(loss), flush=True)
    deferred.run_all()


if __name__ == "__main__":
    main()
