# "OOM in the middle of an epoch": one batch has a very long sequence
import os

import tensorflow as tf

embedding = tf.keras.layers.Embedding(1000, 128)
attention = tf.keras.layers.MultiHeadAttention(4, 32)
dense = tf.keras.layers.Dense(1)
optimizer = tf.keras.optimizers.Adam()


@tf.function(reduce_retracing=True)
def step(ids):
    with tf.GradientTape() as tape:
        h = embedding(ids)
        loss = tf.reduce_mean(dense(attention(h, h)) ** 2)
    variables = embedding.trainable_variables + attention.trainable_variables + dense.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))


bound = int(os.environ.get("MAX_LENGTH", "2048"))
for i, length in enumerate([64, 96, 80, 128, 64, 100, 90, 70, 128, 110] * 6 + [1400]):
    step(tf.random.uniform([8, min(bound, length)], 0, 1000, tf.int32))
    if i % 10 == 0:
        print("batch", i, "length", length, flush=True)
