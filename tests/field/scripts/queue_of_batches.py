# a loader's thread puts batches into a queue, and fills it while the training pauses for its validation
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
for i in range(150):
    conv(waiting.get(timeout=10))
    if i == 10:
        time.sleep(15)
    if i % 10 == 0:
        print("step", i, waiting.qsize(), "batches wait", flush=True)
