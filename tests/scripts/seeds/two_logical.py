"""Two logical devices on the first GPU, each with its own limit and its own tensor."""

import tensorflow as tf
from seen import tell

gpus = tf.config.list_physical_devices("GPU")
kept = []
if gpus:
    parts = [tf.config.LogicalDeviceConfiguration(memory_limit=limit) for limit in (1024, 2048)]
    tf.config.set_visible_devices(gpus[:1], "GPU")
    tf.config.set_logical_device_configuration(gpus[0], parts)
for number, device in enumerate(tf.config.list_logical_devices("GPU")):
    with tf.device(device.name):
        kept.append(tf.zeros([64 * (number + 1), 256, 1024]))
tell(gpus=len(gpus), logical=len(kept))
