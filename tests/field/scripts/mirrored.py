# after tensorflow#22088, #38889: the same model needs more memory under MirroredStrategy
import sys

import keras
import numpy as np
import tensorflow as tf

k = int(sys.argv[1])
cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration() for _ in range(2)])
devices = [f"CPU:{i}" for i in range(k)]
strategy = tf.distribute.MirroredStrategy(devices) if k == 2 else tf.distribute.OneDeviceStrategy("CPU:0")
with strategy.scope():
    layers = [keras.layers.Dense(2048, activation="relu") for _ in range(2)]
    model = keras.Sequential([keras.layers.Input((512,)), *layers, keras.layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=False)
x, y = np.random.rand(64 * k, 512).astype("float32"), np.random.rand(64 * k, 1).astype("float32")
model.fit(tf.data.Dataset.from_tensors((x, y)).repeat(30), epochs=1, verbose=2)
