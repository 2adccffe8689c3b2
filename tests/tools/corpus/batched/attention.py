"""A block of attention."""

import sys

import keras
import numpy as np

batch = int(sys.argv[1])
tokens = keras.layers.Input((64,), dtype="int32")
x = keras.layers.Embedding(1000, 64)(tokens)
x = x + keras.layers.MultiHeadAttention(4, 16)(x, x)
x = x + keras.layers.Dense(64)(keras.layers.Dense(256, activation="gelu")(x))
model = keras.Model(tokens, keras.layers.Dense(1000)(x))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
for _ in range(4):
    model.train_on_batch(np.ones((batch, 64), np.int32), np.zeros((batch, 64), np.int32))
print("done")
