"""Only the first GPU is made visible, without growth or a limit; seconds to hold still as the first argument (3)."""

import sys

import tensorflow as tf
from seen import tell

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[:1], "GPU")
a, b = tf.random.normal([2048, 2048]), tf.random.normal([2048, 2048])
c = tf.matmul(a, b)
hold_s = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
tell(hold_s, gpus=len(gpus), logical=len(tf.config.list_logical_devices("GPU")), shape=list(c.shape))
