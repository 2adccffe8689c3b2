"""MirroredStrategy on two logical CPU devices, which share one pool."""

import tensorflow as tf

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((512,)), *(tf.keras.layers.Dense(768) for _ in range(3))])
    model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensor_slices((tf.zeros((4096, 512)), tf.zeros((4096, 768)))).batch(1024)
model.fit(data, epochs=3, verbose=0)
print("done")
