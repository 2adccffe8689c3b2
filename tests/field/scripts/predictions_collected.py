# after keras#5337: model(x) in a loop, and all feature maps are collected
import os

import tensorflow as tf

model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((96, 96, 3)),
        tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, padding="same", name="features"),
    ]
)
features = []
for batch in range(150):
    found = model(tf.random.uniform([16, 96, 96, 3]), training=False)
    features.append(found.numpy() if os.environ.get("ON") == "host" else found)
    if batch % 20 == 0:
        print("batch", batch, flush=True)
