# own batches of 64; what remains is added to the last one, which then has 500 images
import os

import numpy as np
import tensorflow as tf

images = np.random.rand(64 * 12 + 436, 32, 32, 3).astype("float32")
layers = [tf.keras.layers.Conv2D(32, 3, padding="same", activation="relu") for _ in range(3)]
model = tf.keras.Sequential([tf.keras.layers.Input((32, 32, 3)), *layers, tf.keras.layers.Dense(3)])
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function(reduce_retracing=True)
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - x))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


cuts = range(64, len(images), 64) if os.environ.get("REMAINDER") == "apart" else range(64, 64 * 12 + 1, 64)
for i, batch in enumerate(np.split(images, cuts)):
    print("batch", i, len(batch), float(step(batch)), flush=True)
