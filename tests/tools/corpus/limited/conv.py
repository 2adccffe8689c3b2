"""Keras with convolutions, and batches that grow."""

import keras
import numpy as np

layers = [keras.layers.Conv2D(16, 3, padding="same", activation="relu") for _ in range(3)]
model = keras.Sequential([keras.layers.Input((48, 48, 3)), *layers, keras.layers.Flatten(), keras.layers.Dense(10)])
model.compile("adam", "mse", jit_compile=False)
for batch in (4, 16, 64, 192, 8):
    x = np.ones((batch, 48, 48, 3), np.float32)
    model.fit(x, np.zeros((batch, 10), np.float32), batch_size=batch, epochs=3, verbose=0)
print("done")
