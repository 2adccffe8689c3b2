# progressive resizing: each phase has larger images, up to MAX_SIZE
import os

import tensorflow as tf

layers = [tf.keras.layers.Conv2D(24, 3, padding="same", activation="relu") for _ in range(3)]
model = tf.keras.Sequential([*layers, tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(10)])
optimizer = tf.keras.optimizers.Adam()
for size in (32, 48, 64, 96, 128, 192, 256, 320):
    size = min(size, int(os.environ.get("MAX_SIZE", "512")))
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.random.uniform([8, size, size, 3]))))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    print("size", size, float(loss), flush=True)
