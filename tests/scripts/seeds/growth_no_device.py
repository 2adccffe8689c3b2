"""Growth is requested without a device, which raises; the script goes on without growth."""

import tensorflow as tf
from seen import tell

refused = None
try:
    tf.config.experimental.set_memory_growth(True, True)
except Exception as error:
    refused = f"{type(error).__name__}: {error}"
tf.matmul(tf.ones([512, 512]), tf.ones([512, 512]))
tell(gpus=len(tf.config.list_physical_devices("GPU")), refused=refused)
