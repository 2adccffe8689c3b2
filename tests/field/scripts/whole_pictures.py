"""A U-Net is trained on whole pictures. Argument 1: pictures in a batch."""

import sys

import keras
import numpy as np
from keras import layers

BATCH, HEIGHT, WIDTH = int(sys.argv[1]), 384, 512


def block(x: keras.KerasTensor, filters: int) -> keras.KerasTensor:
    """Return two convolutions of *x*."""
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return x


pictures = keras.Input((HEIGHT, WIDTH, 3))
x, skips = pictures, []
for filters in (16, 32):
    x = block(x, filters)
    skips.append(x)
    x = layers.MaxPooling2D()(x)
x = block(x, 64)
for skip in reversed(skips):
    x = layers.Conv2DTranspose(skip.shape[-1], 2, strides=2)(x)
    x = block(layers.concatenate([x, skip]), skip.shape[-1])
model = keras.Model(pictures, layers.Conv2D(2, 1, activation="softmax")(x))
model.compile("adam", "sparse_categorical_crossentropy")
shown = np.random.rand(8, HEIGHT, WIDTH, 3).astype("float32")
model.fit(shown, np.random.randint(0, 2, (8, HEIGHT, WIDTH)), batch_size=BATCH, epochs=1, verbose=2)
