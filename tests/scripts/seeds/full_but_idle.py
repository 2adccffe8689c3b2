"""The whole card is taken and nothing is computed: memory is full while the GPU idles."""

import tensorflow as tf
from seen import tell

kept = tf.zeros([64, 256, 1024])
tell(60, gpus=len(tf.config.list_physical_devices("GPU")))
