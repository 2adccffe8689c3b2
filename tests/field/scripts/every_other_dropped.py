# tiles are kept and dropped in turn: what is free lies in small pieces; made one kind after the other, in one piece
import sys

import tensorflow as tf


def tile(i):
    return tf.fill([1024, 1024], float(i))  # 4 MiB


kept, dropped = [], []
if sys.argv[1] == "in-turn":
    for i in range(45):
        kept.append(tile(i))
        dropped.append(tile(i))
else:
    dropped = [tile(i) for i in range(45)]
    kept = [tile(i) for i in range(45)]
del dropped
canvas = tf.fill([15, 1024, 1024], 0.0)
print("canvas", canvas.shape, len(kept))
