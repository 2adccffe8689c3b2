"""A tf.function is warmed up, then called a hundred times: does a call take memory that is not given back?"""

import tensorflow as tf
from seen import figures, tell

product = tf.function(tf.matmul)
left, right = tf.random.normal([1024, 1024]), tf.random.normal([1024, 1024])
result = product(left, right)
warm = figures()
for _ in range(100):
    result = product(left, right)
tell(gpus=len(tf.config.list_physical_devices("GPU")), warm=warm)
