"""Small tensors, of which every other one is freed, and then large ones, for which the free pieces are too small."""

import tensorflow as tf

kept = [tf.ones([256, 1024]) for _ in range(160)]
del kept[::2]
for rows in (8, 24, 40):
    large = tf.ones([rows, 256, 1024])
    total = tf.reduce_sum(large * 2.0)
print("done")
