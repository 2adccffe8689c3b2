"""Keras with dense layers, and batches that grow."""

import keras
import numpy as np

model = keras.Sequential([keras.layers.Input((512,)), *(keras.layers.Dense(1024, "relu") for _ in range(4))])
model.compile("adam", "mse", jit_compile=False)
for batch in (16, 256, 1024, 4096, 64):
    x = np.ones((batch, 512), np.float32)
    model.fit(x, np.zeros((batch, 1024), np.float32), batch_size=batch, epochs=4, verbose=0)
print("done")
