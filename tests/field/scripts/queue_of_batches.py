# a loader's thread puts batches into a queue, faster than the training takes them
import os
import queue
import threading
import time

import tensorflow as tf

waiting = queue.Queue(maxsize=int(os.environ.get("MAXSIZE", "0")))


def load():
    for _ in range(300):
        waiting.put(tf.random.uniform([32, 128, 128, 3]))  # 6 MiB


threading.Thread(target=load, daemon=True).start()
conv = tf.keras.layers.Conv2D(2, 3, strides=4)
for i in range(100):
    conv(waiting.get(timeout=20))
    time.sleep(0.1)
    if i % 10 == 0:
        print("step", i, waiting.qsize(), "batches wait", flush=True)
