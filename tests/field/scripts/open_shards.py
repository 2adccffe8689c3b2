"""Mixes the examples of 64 shards: so many shards are open at the same time."""

import sys

import tensorflow as tf

SHARDS, EXAMPLES = 64, 512


def examples(shard):
    seed = tf.stack([tf.cast(shard, tf.int32), 1])
    x = tf.random.stateless_uniform([EXAMPLES, 48, 48], seed)
    y = tf.random.stateless_uniform([EXAMPLES], seed, maxval=10, dtype=tf.int32)
    return tf.data.Dataset.from_tensor_slices((x, y))


mixed = tf.data.Dataset.range(SHARDS).interleave(examples, cycle_length=int(sys.argv[1]), block_length=2)
model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(10)])
model.compile("rmsprop", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(mixed.batch(32).prefetch(2), verbose=2)
