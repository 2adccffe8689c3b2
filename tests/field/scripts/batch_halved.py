# a script that halves its batch each time memory runs out, from the first step on, and then goes on
import sys
import time

import tensorflow as tf

model = tf.keras.Sequential(
    [
        tf.keras.Input([128, 256]),
        tf.keras.layers.Dense(256, activation="tanh", use_bias=False),
        tf.keras.layers.Dense(256, activation="tanh", use_bias=False),
        tf.keras.layers.GlobalAveragePooling1D(),
        tf.keras.layers.Dense(10),
    ]
)
optimizer = tf.keras.optimizers.SGD(0.01)


def step(batch):
    images = tf.random.normal([batch, 128, 256])
    labels = tf.random.uniform([batch], maxval=10, dtype=tf.int32)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return float(loss)


batch, done = int(sys.argv[1]), 0
while done < 60:
    try:
        loss = step(batch)
    except tf.errors.ResourceExhaustedError:
        batch //= 2
        print("out of memory: now", batch, flush=True)
        continue
    done += 1
    time.sleep(0.05)
print("batch", batch, "loss", loss)
