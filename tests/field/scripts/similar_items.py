# a healthy training, and then a matrix in NumPy that the machine has no memory for; or one row at a time
import sys

import numpy as np
import tensorflow as tf

x = np.random.default_rng(0).normal(size=(20_000, 64)).astype("float32")
model = tf.keras.Sequential([tf.keras.Input([64]), tf.keras.layers.Dense(256, "relu"), tf.keras.layers.Dense(64)])
model.compile(optimizer="adam", loss="mse")
model.fit(x, x, batch_size=64, epochs=4, verbose=2)
items = np.repeat(model.predict(x[:100], verbose=0), 15_000, axis=0)
if sys.argv[1] == "rows":
    print(max(float((items @ items[row]).sum()) for row in range(20)))
else:
    matrix = np.zeros((len(items), len(items)))
    print(matrix.shape)
