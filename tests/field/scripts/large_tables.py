# two towers with large embeddings: Keras's Adam keeps two slots for each row, and computes with whole tables
import sys

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

USERS, ITEMS, DIM = 400_000, 100_000, 64


class TwoTowers(keras.Model):
    def __init__(self):
        super().__init__()
        self.users = keras.Sequential([layers.Embedding(USERS, DIM), layers.Dense(32)])
        self.items = keras.Sequential([layers.Embedding(ITEMS, DIM), layers.Dense(32)])

    def call(self, inputs):
        return tf.reduce_sum(self.users(inputs["user"]) * self.items(inputs["item"]), axis=-1, keepdims=True)


rng = np.random.default_rng(0)
n = 20_000
rated = {"user": rng.integers(0, USERS, n), "item": rng.integers(0, ITEMS, n)}
data = tf.data.Dataset.from_tensor_slices((rated, rng.integers(1, 6, n).astype("float32"))).batch(512).prefetch(2)
model = TwoTowers()
model.compile(sys.argv[1], "mse", jit_compile="xla" in sys.argv or "auto")
model.fit(data, epochs=1, verbose=2)
