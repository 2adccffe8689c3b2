# warm restarts: each restart makes a new Adam, and the schedule keeps the old ones
import sys

import tensorflow as tf

layers = [tf.keras.layers.Dense(1024, activation="relu") for _ in range(3)]
model = tf.keras.Sequential([tf.keras.layers.Input((512,)), *layers, tf.keras.layers.Dense(10)])
restarts = []
for restart in range(40):
    optimizer = tf.keras.optimizers.Adam(1e-3 / (1 + restart))
    restarts.append(optimizer if sys.argv[1] == "optimizers" else 1e-3 / (1 + restart))
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.random.normal([64, 512]))))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    print("restart", restart, float(loss), flush=True)
