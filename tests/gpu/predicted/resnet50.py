"""Keras's ResNet-50 for some steps, compiled by XLA (``auto``) or not (``off``)."""

import sys

import keras
import numpy as np

model = keras.applications.ResNet50(weights=None)
model.compile("adam", "sparse_categorical_crossentropy", jit_compile="auto" if sys.argv[1] == "auto" else False)
images, labels = np.zeros((32, 224, 224, 3), "float32"), np.zeros(32)
for _ in range(12):
    model.train_on_batch(images, labels)
print("done")
