"""MirroredStrategy on two logical devices of one GPU. Without NCCL, which cannot join two devices of one GPU."""

import tensorflow as tf

(gpu,) = tf.config.list_physical_devices("GPU")
tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=8192)] * 2)
strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"], tf.distribute.HierarchicalCopyAllReduce())
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((512,)), *(tf.keras.layers.Dense(1536) for _ in range(4))])
    model.compile("adam", "mse", jit_compile=False)
data = tf.data.Dataset.from_tensor_slices((tf.zeros((8192, 512)), tf.zeros((8192, 1536)))).batch(2048)
model.fit(data, epochs=6, verbose=0)
print("done")
