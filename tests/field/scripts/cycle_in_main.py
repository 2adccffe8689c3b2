# two loops draw from one endless stream: itertools.cycle keeps every batch; or the generator begins again
import itertools
import sys

import keras
import numpy as np
import tensorflow as tf
from keras import layers

BATCH = 32


def photos():
    rng = np.random.default_rng(4)
    for _ in range(1000):
        yield tf.convert_to_tensor(rng.random((BATCH, 128, 128, 3), dtype=np.float32))


def discriminator():
    return keras.Sequential(
        [
            keras.Input((128, 128, 3)),
            layers.Conv2D(8, 5, 4, activation="relu"),
            layers.Conv2D(16, 5, 4, activation="relu"),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )


def generator():
    return keras.Sequential(
        [
            keras.Input((32,)),
            layers.Dense(8 * 8 * 8),
            layers.Reshape((8, 8, 8)),
            layers.Conv2DTranspose(8, 4, 4, activation="relu"),
            layers.Conv2DTranspose(3, 4, 4, activation="sigmoid"),
        ]
    )


def main():
    g, d = generator(), discriminator()
    bce = keras.losses.BinaryCrossentropy(from_logits=True)
    opt_d, opt_g = keras.optimizers.Adam(2e-4), keras.optimizers.Adam(2e-4)
    again = itertools.chain.from_iterable(photos() for _ in itertools.count())
    endless = itertools.cycle(photos()) if sys.argv[1] == "cycle" else again
    for step in range(120):
        real = next(endless)
        with tf.GradientTape() as tape_d:
            fake = g(tf.random.normal((BATCH, 32)))
            loss_d = bce(tf.ones((BATCH, 1)), d(real)) + bce(tf.zeros((BATCH, 1)), d(fake))
        opt_d.apply_gradients(zip(tape_d.gradient(loss_d, d.trainable_variables), d.trainable_variables))
        with tf.GradientTape() as tape_g:
            loss_g = bce(tf.ones((BATCH, 1)), d(g(tf.random.normal((BATCH, 32)))))
        opt_g.apply_gradients(zip(tape_g.gradient(loss_g, g.trainable_variables), g.trainable_variables))
        if step % 10 == 0:
            print(step, float(loss_d), float(loss_g), flush=True)


if __name__ == "__main__":
    main()
