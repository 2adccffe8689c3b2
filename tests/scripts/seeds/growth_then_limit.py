"""Growth, then a limit on the same GPU: TensorFlow accepts both and drops growth."""

import tensorflow as tf
from seen import tell

gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
for gpu in gpus:
    tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=4096)])
tf.matmul(tf.ones([512, 512]), tf.ones([512, 512]))
tell(gpus=len(gpus))
