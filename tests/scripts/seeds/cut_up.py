"""A pool of 1 GiB is cut up and every other piece freed. A large tensor would fit into the free pieces together."""

import tensorflow as tf
from seen import tell

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_logical_device_configuration(gpus[0], [tf.config.LogicalDeviceConfiguration(memory_limit=1024)])
pieces = [tf.zeros([8, 256, 1024]) for _ in range(120 if gpus else 12)]
del pieces[::2]
failed = False
try:
    large = tf.zeros([200, 256, 1024])
except tf.errors.ResourceExhaustedError:
    failed = True
tell(gpus=len(gpus), failed=failed)
