"""A tf.function is called with a Python number that changes, and is traced again each time."""

import tensorflow as tf
from seen import tell

scaled = tf.function(lambda x, factor: x * factor)
x = tf.random.normal([256, 256])
for number in range(60):
    scaled(x, float(number))
tell(gpus=len(tf.config.list_physical_devices("GPU")))
