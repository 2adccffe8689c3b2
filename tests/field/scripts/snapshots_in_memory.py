# the weights of each epoch are kept, to go back to the best: all of them, or the last N
import os

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Input((512,)), tf.keras.layers.Dense(3000), tf.keras.layers.Dense(512)])
optimizer = tf.keras.optimizers.SGD(0.01)
last = int(os.environ.get("LAST", "1000"))
snapshots = []
for epoch in range(60):
    for _ in range(5):
        x = tf.random.normal([64, 512])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    snapshots.append((float(loss), [tf.identity(w.value) for w in model.weights]))
    del snapshots[:-last]
    print("epoch", epoch, float(loss), flush=True)
