# "OOM at the end of epoch 1": the validation's batch is larger than that of the training
import sys

import keras
import numpy as np

x, y = np.random.rand(256, 64, 64, 3).astype("float32"), np.random.randint(0, 10, 256)
model = keras.Sequential(
    [
        keras.layers.Input((64, 64, 3)),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10),
    ]
)
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
model.fit(x, y, batch_size=16, epochs=1, verbose=2)
model.evaluate(x, y, batch_size=int(sys.argv[1]), verbose=2)
