"""Growth is requested after the first operation: the RuntimeError is caught and printed, as examples do."""

import tensorflow as tf
from seen import tell

gpus = tf.config.list_physical_devices("GPU")
tf.matmul(tf.ones([512, 512]), tf.ones([512, 512]))
refused = None
try:
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
except RuntimeError as error:
    refused = str(error)
tell(gpus=len(gpus), refused=refused)
