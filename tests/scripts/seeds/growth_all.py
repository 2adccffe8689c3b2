"""Growth for every GPU, set as early as possible; then a matrix product."""

import tensorflow as tf
from seen import tell

gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
weights = tf.random.normal([2048, 2048])
total = float(tf.reduce_sum(tf.matmul(weights, weights)))
tell(gpus=len(gpus), finite=total == total)
