"""A small training, an evaluation with large activations, and the training again."""

import keras
import numpy as np

model = keras.Sequential([keras.layers.Input((256,)), *(keras.layers.Dense(2048, "relu") for _ in range(3))])
model.compile("sgd", "mse", jit_compile=False)
x, y = np.ones((8192, 256), np.float32), np.zeros((8192, 2048), np.float32)
for _ in range(2):
    model.fit(x[:64], y[:64], batch_size=32, epochs=3, verbose=0)
    model.evaluate(x, y, batch_size=8192, verbose=0)
print("done")
