"""An overlap of masks over a whole epoch, in a metric that keeps the masks, or their sums."""

import sys

import keras
import numpy as np
import tensorflow as tf


class Overlap(keras.metrics.Metric):
    def __init__(self):
        super().__init__(name="overlap")
        self.masks = []
        self.sums = [0.0, 0.0]

    def update_state(self, wanted, found, sample_weight=None):
        if sys.argv[1] == "masks":
            self.masks.append((tf.cast(wanted, tf.float32), found))
        self.sums[0] += float(tf.reduce_sum(wanted * found))
        self.sums[1] += float(tf.reduce_sum(wanted) + tf.reduce_sum(found))

    def result(self):
        return tf.constant(2 * self.sums[0] / max(self.sums[1], 1e-6))


numbers = np.random.default_rng(5)
images = numbers.random((256, 64, 64, 3), dtype=np.float32)
masks = (numbers.random((256, 64, 64, 8)) > 0.5).astype("float32")
model = keras.Sequential([
    keras.layers.Input((64, 64, 3)),
    keras.layers.Conv2D(8, 3, padding="same", activation="sigmoid"),
])  # fmt: skip
model.compile("adam", "binary_crossentropy", metrics=[Overlap()], run_eagerly=True)
model.fit(images, masks, batch_size=16, epochs=4, verbose=2)
