# "evaluation loop OOM": predictions of all batches are concatenated, on the device or on the host
import sys

import numpy as np
import tensorflow as tf

layers = [tf.keras.layers.Conv2D(16, 3, padding="same"), tf.keras.layers.Conv2D(8, 3, padding="same")]
model = tf.keras.Sequential([tf.keras.layers.Input((64, 64, 3)), *layers])
out, parts = None, []
for b in range(200):
    p = model(tf.random.uniform([16, 64, 64, 3]), training=False)  # 2 MiB
    if sys.argv[1] == "host":
        parts.append(p.numpy())
    else:
        out = p if out is None else tf.concat([out, p], 0)
    if b % 20 == 0:
        print("batch", b, flush=True)
if parts:
    print(np.concatenate(parts).shape)
