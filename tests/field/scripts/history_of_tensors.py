# a history of the training as a dictionary of lists; one of its entries is an attention map
import os

import tensorflow as tf

attention = tf.keras.layers.MultiHeadAttention(4, 16)
history = {"loss": [], "entropy": [], "attention": []}
optimizer = tf.keras.optimizers.Adam()
every = int(os.environ.get("EVERY", "1"))
for i in range(400):
    x = tf.random.normal([8, 128, 64])
    with tf.GradientTape() as tape:
        y, scores = attention(x, x, return_attention_scores=True)
        loss = tf.reduce_mean(tf.square(y - x))
    variables = attention.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    history["loss"].append(loss)
    history["entropy"].append(-tf.reduce_sum(scores * tf.math.log(scores + 1e-9)))
    if i % every == 0:
        history["attention"].append(scores)
    if i % 50 == 0:
        print("step", i, float(loss), flush=True)
