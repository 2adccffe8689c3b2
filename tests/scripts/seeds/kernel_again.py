"""A product is computed, its inputs are deleted, and it is computed again: does a used kernel hold memory?"""

import tensorflow as tf
from seen import figures, process_total, tell

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[:1], "GPU")
    tf.config.experimental.set_memory_growth(gpus[0], True)
first, second = tf.random.normal([100, 100]), tf.random.normal([100, 100])
held = [process_total()]
for tensor in (first, second):
    tf.matmul(tensor, tensor)
    held.append(process_total())
del first, second, tensor
deleted = figures()
third = tf.random.normal([100, 100])
tf.matmul(third, third)
held.append(process_total())
tell(gpus=len(gpus), process_totals=held, after_deleting=deleted)
