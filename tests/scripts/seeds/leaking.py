"""Results are kept as tensors in a list: the bytes in use rise step by step."""

import time

import tensorflow as tf
from seen import tell

for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
weights = tf.Variable(tf.random.normal([1024, 1024]))
train = tf.function(lambda batch: tf.matmul(batch, weights))
history = []
for _ in range(1100):
    history.append(train(tf.random.normal([1024, 1024])))  # the whole output, not one number
    time.sleep(0.2)
tell(gpus=len(tf.config.list_physical_devices("GPU")), kept=len(history))
