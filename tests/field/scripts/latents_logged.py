# a variational autoencoder whose means, variances, samples and outputs are kept for a plot, as tensors or as arrays
import sys

import numpy as np
import tensorflow as tf
from tensorflow import keras

x = np.random.default_rng(0).normal(size=(30_000, 64)).astype("float32")
encoder = keras.Sequential([keras.Input((64,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(64)])
decoder = keras.Sequential([keras.Input((32,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(32)])
optimizer = keras.optimizers.Adam(1e-3)


class Log:
    def __init__(self):
        self.mu, self.logvar, self.z, self.made = [], [], [], []


log = Log()


@tf.function
def step(batch):
    with tf.GradientTape() as tape:
        mu, logvar = tf.split(encoder(batch), 2, axis=1)
        z = mu + tf.exp(logvar / 2) * tf.random.normal(tf.shape(mu))
        made = decoder(z)
        kl = -0.5 * tf.reduce_mean(1 + logvar - mu**2 - tf.exp(logvar))
        loss = tf.reduce_mean((made - batch[:, :32]) ** 2) + 1e-3 * kl
    variables = encoder.trainable_variables + decoder.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss, mu, logvar, z, made


for epoch in range(14):
    for start in range(0, len(x), 512):
        loss, *made = step(x[start : start + 512])
        for kept, new in zip((log.mu, log.logvar, log.z, log.made), made):
            kept.append(new if sys.argv[1] == "tensors" else new.numpy())
    print(epoch, float(loss), flush=True)
