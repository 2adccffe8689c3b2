"""Python needs half a second for each batch, and training on it only a moment: the GPU waits for the host."""

import time

import tensorflow as tf
from seen import tell

weights = tf.Variable(tf.random.normal([4096, 4096]))
train = tf.function(lambda batch: weights.assign_sub(1e-6 * tf.matmul(batch, weights)))
since = time.monotonic()
while time.monotonic() - since < 60:
    prepared = time.monotonic()
    while time.monotonic() - prepared < 0.5:  # decoding, augmenting
        sum(range(10_000))
    train(tf.random.normal([4096, 4096]))
tell(gpus=len(tf.config.list_physical_devices("GPU")))
