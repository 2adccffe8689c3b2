# A loss of the script in Keras's graph: labels [N, 1] less predictions [N], or with the last dimension taken away
import sys

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(3)
features = rng.normal(size=(30_000, 24)).astype("float32")
wage = (features @ rng.normal(size=(24, 1)) + 3).astype("float32")


def huber(y_true, y_pred):
    y_pred = tf.squeeze(y_pred, -1)
    y_true = tf.squeeze(y_true, -1) if sys.argv[1] == "rows" else y_true
    error = y_true - y_pred
    return tf.reduce_mean(tf.where(tf.abs(error) < 1.0, 0.5 * error * error, tf.abs(error) - 0.5))


model = keras.Sequential([keras.Input((24,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(1e-3), loss=huber)
model.fit(features[:2000], wage[:2000], batch_size=256, epochs=3, verbose=2)
print("the whole set as one batch")
model.fit(features, wage, batch_size=15_000, epochs=5, verbose=2)
