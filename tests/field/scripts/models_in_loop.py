# after tensorflow#36465, keras#9379: models built, trained and dropped one after the other
import gc
import sys

import keras
import numpy as np
import tensorflow as tf

x, y = np.random.rand(512, 256).astype("float32"), np.random.rand(512, 1).astype("float32")


def once(eagerly):
    layers = [keras.layers.Dense(3000, activation="relu") for _ in range(2)]
    model = keras.Sequential([keras.layers.Input((256,)), *layers, keras.layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=False, run_eagerly=eagerly)
    model.fit(x, y, batch_size=64, epochs=2, verbose=0)


for i in range(int(sys.argv[1])):
    once(eagerly="eager" in sys.argv)
    keras.backend.clear_session()
    gc.collect()
    print(i, tf.config.experimental.get_memory_info("CPU:0")["current"] >> 20, "MiB in use", flush=True)
