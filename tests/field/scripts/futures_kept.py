"""Tiles are measured by a thread. The futures are the keys of a dict, as in Python's own example."""

import concurrent.futures
import sys

import numpy as np
import tensorflow as tf


def measure(tile):
    images = np.random.default_rng(tile).random((16, 288, 64), dtype=np.float32)
    return tf.nn.softmax(tf.constant(images) * 8.0)


with concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool:
    jobs = {pool.submit(measure, tile): tile for tile in range(600)}
    for job in concurrent.futures.as_completed(jobs):
        tile = jobs.pop(job) if sys.argv[1] == "popped" else jobs[job]
        mean = float(tf.reduce_mean(job.result()))
        if tile % 50 == 0:
            print(f"tile {tile}: mean {mean:.2f}", flush=True)
        del job
