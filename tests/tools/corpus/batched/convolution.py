"""Convolutions, followed by a dense layer."""

import sys

import keras
import numpy as np

batch = int(sys.argv[1])
layers = [keras.layers.Conv2D(16, 3, padding="same", activation="relu") for _ in range(3)]
model = keras.Sequential([keras.layers.Input((32, 32, 3)), *layers, keras.layers.Flatten(), keras.layers.Dense(10)])
model.compile("adam", "mse", jit_compile=False)
for _ in range(4):
    model.train_on_batch(np.ones((batch, 32, 32, 3), np.float32), np.zeros((batch, 10), np.float32))
print("done")
