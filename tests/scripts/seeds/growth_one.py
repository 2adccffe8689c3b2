"""Growth for the first GPU only. With more GPUs, TensorFlow refuses that, as growth must not differ."""

import sys

import tensorflow as tf
from seen import tell

gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus[:1]:
    tf.config.experimental.set_memory_growth(gpu, True)
refused = None
try:
    tf.matmul(tf.ones([512, 512]), tf.ones([512, 512]))
except ValueError as error:
    refused = str(error)
    print(f"ValueError: {refused}", file=sys.stderr)
    tf.config.set_visible_devices(gpus[:1], "GPU")
tell(gpus=len(gpus), refused=refused)
