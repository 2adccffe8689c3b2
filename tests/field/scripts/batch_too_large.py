# the first step already fails: the activations of a batch do not fit
import sys

import tensorflow as tf

layers = [tf.keras.layers.Conv2D(48, 3, padding="same", activation="relu") for _ in range(4)]
model = tf.keras.Sequential([tf.keras.layers.Input((64, 64, 3)), *layers, tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam()
for i in range(6):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(tf.random.uniform([int(sys.argv[1]), 64, 64, 3]))))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    print("step", i, float(loss), flush=True)
