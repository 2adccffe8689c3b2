"""Holes: every second tensor is freed, and each later tensor is too large for the holes."""

import tensorflow as tf

kept = []
for size in (1, 2, 3, 5, 9):
    made = [tf.zeros([size, 1 << 18]) for _ in range(12)]
    kept += made[::2]
    del made
    larger = tf.zeros([size * 5, 1 << 18])
    del larger
print("done")
