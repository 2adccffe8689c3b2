"""Serves requests from several threads: ``many_callers.py THREADS``. Each call needs memory for its own batch."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf


@tf.function(input_signature=[tf.TensorSpec((None, 1024), tf.float32)])
def score(rows: tf.Tensor) -> tf.Tensor:
    waves = tf.sin(rows)
    return tf.reduce_mean(tf.sin(waves) * tf.cos(tf.cos(waves)))


batch = np.ones((8192, 1024), np.float32)


def answer(_: int) -> float:
    return float(score(batch))


print(f"alone {answer(0):.3f}, {answer(1):.3f}", flush=True)
with ThreadPoolExecutor(int(sys.argv[1])) as pool:
    print(f"together {sum(pool.map(answer, range(200))):.3f}")
