# each user's request makes an adapter, and a cache keeps them
import functools
import os

import tensorflow as tf


@functools.lru_cache(maxsize=int(os.environ["ADAPTERS"]) if "ADAPTERS" in os.environ else None)
def adapter(user):
    return [tf.Variable(tf.random.normal([512, 512]), name=f"adapter_{i}") for i in range(4)]


@tf.function
def apply(x, weights):
    for w in weights:
        x = tf.nn.relu(x @ w)
    return tf.reduce_sum(x)


for user in range(150):
    apply(tf.ones([8, 512]), adapter(user))
    if user % 10 == 0:
        print("user", user, flush=True)
