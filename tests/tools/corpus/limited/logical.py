"""Two logical devices, each with tensors of its own."""

import tensorflow as tf

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
kept = []
for index in range(20):
    with tf.device(f"CPU:{index % 2}"):
        kept.append(tf.zeros([1 + index, 1 << 18]))
print("done")
