# after tensorflow#34876: a callback keeps what the model says about the validation's images, epoch by epoch
import sys

import keras
import numpy as np


class Watch(keras.callbacks.Callback):
    def __init__(self, images, last):
        super().__init__()
        self.images = images
        self.last = last
        self.outputs = []

    def on_epoch_end(self, epoch, logs=None):
        self.outputs.append(self.model(self.images))
        del self.outputs[: -self.last]


x = np.random.rand(256, 32, 32, 3).astype("float32")
model = keras.Sequential(
    [keras.layers.Input((32, 32, 3)), keras.layers.Conv2D(16, 3, padding="same"), keras.layers.Conv2D(8, 3)]
)
model.compile("adam", "mse", jit_compile=False)
watch = Watch(x, last=int(sys.argv[1]))
model.fit(x, x[:, 1:-1, 1:-1].mean(-1, keepdims=True), epochs=60, batch_size=64, verbose=2, callbacks=[watch])
