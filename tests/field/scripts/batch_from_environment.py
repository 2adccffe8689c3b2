# BATCH=64 fits a pool of 300M, BATCH=160 does not
import os

import keras
import numpy as np
import tensorflow as tf

x, y = np.random.rand(256, 64, 64, 3).astype("float32"), np.random.randint(0, 10, 256)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(int(os.environ.get("BATCH", "64")))
images = keras.layers.Input((64, 64, 3))
h = keras.layers.Conv2D(64, 3, padding="same", activation="relu", name="enc1")(images)
h = keras.layers.Conv2D(64, 3, padding="same", activation="relu", name="enc2")(h)
h = keras.layers.GlobalAveragePooling2D()(h)
model = keras.Model(images, keras.layers.Dense(10)(h))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=3, verbose=2)
