# after tensorflow#60401, #56019: fit(numpy array): "Failed copying input tensor ... Dst tensor is not initialized"
import sys

import keras
import numpy as np
import tensorflow as tf

x = np.random.rand(6000, 96, 96, 3).astype("float32")  # 633 MiB
y = np.random.randint(0, 10, 6000)
model = keras.Sequential(
    [
        keras.layers.Input((96, 96, 3)),
        keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
    ]
)
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
if sys.argv[1] == "array":
    model.fit(x, y, batch_size=32, epochs=1, verbose=2)
else:
    signature = (tf.TensorSpec([96, 96, 3]), tf.TensorSpec([], tf.int64))
    data = tf.data.Dataset.from_generator(lambda: zip(x, y), output_signature=signature)
    model.fit(data.batch(32).prefetch(2), epochs=1, verbose=2)
