"""Tensors of random sizes, made and freed in any order; together never more than 200 MiB."""

import random

import tensorflow as tf

KIB = 256  # so many numbers of four bytes are 1 KiB

kept: list[tuple[int, tf.Tensor]] = []
total = 0
for _ in range(6000):
    size = int(40_000 ** random.random())
    while total + size > 200 << 10:
        freed, _tensor = kept.pop(random.randrange(len(kept)))
        total -= freed
    kept.append((size, tf.zeros([size, KIB])))
    total += size
print("done")
