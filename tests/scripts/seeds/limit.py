"""The first GPU gets a limit by a logical device configuration; MiB as the first argument (1024 if there is none)."""

import sys

import tensorflow as tf
from seen import tell

limit = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[:1], "GPU")
    tf.config.set_logical_device_configuration(gpus[0], [tf.config.LogicalDeviceConfiguration(memory_limit=limit)])
a, b = tf.random.normal([2048, 2048]), tf.random.normal([2048, 2048])
c = tf.matmul(a, b)
tell(gpus=len(gpus), limit=limit * 2**20, shape=list(c.shape))
