# reinforcement learning: the replay memory holds the last N observations as tensors
import collections
import os
import random

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(64), tf.keras.layers.Dense(4)])
memory = collections.deque(maxlen=int(os.environ["MEMORY"]))
for i in range(2000):
    observation = tf.random.uniform([84, 84, 8])  # 220 KiB
    memory.append((observation, random.randrange(4), random.random()))
    if i % 4 == 0:
        batch = tf.stack([each[0] for each in random.sample(memory, min(32, len(memory)))])
        model(batch)
    if i % 200 == 0:
        print("step", i, len(memory), flush=True)
