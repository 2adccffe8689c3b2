# weights, gradients and Adam's two copies of them do not fit
import os

import tensorflow as tf

width = int(os.environ.get("WIDTH", "3072"))
layers = [tf.keras.layers.Dense(width, activation="relu") for _ in range(4)]
model = tf.keras.Sequential([tf.keras.layers.Input((256,)), *layers, tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam()


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x)))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


for i in range(10):
    print("step", i, float(step(tf.random.normal([32, 256]))), flush=True)
