"""A recurrent layer over a sequence."""

import sys

import keras
import numpy as np

batch = int(sys.argv[1])
layers = [keras.layers.Input((24, 64)), keras.layers.GRU(128), keras.layers.Dense(10)]
model = keras.Sequential(layers)
model.compile("adam", "mse", jit_compile=False)
for _ in range(4):
    model.train_on_batch(np.ones((batch, 24, 64), np.float32), np.zeros((batch, 10), np.float32))
print("done")
