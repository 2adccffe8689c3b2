"""Dense layers."""

import sys

import keras
import numpy as np

batch = int(sys.argv[1])
layers = [keras.layers.Dense(1024, activation="relu") for _ in range(4)]
model = keras.Sequential([keras.layers.Input((512,)), *layers, keras.layers.Dense(10)])
model.compile("adam", "mse", jit_compile=False)
for _ in range(4):
    model.train_on_batch(np.ones((batch, 512), np.float32), np.zeros((batch, 10), np.float32))
print("done")
