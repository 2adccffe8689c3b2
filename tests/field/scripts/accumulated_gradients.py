# gradient accumulation over 64 small batches: the gradients are collected and then summed, or added at once
import sys

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Input((512,)), tf.keras.layers.Dense(2048), tf.keras.layers.Dense(512)])
optimizer = tf.keras.optimizers.SGD(0.01)
for update in range(3):
    accumulated = []
    for _ in range(64):
        x = tf.random.normal([16, 512])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - x))
        gradients = tape.gradient(loss, model.trainable_variables)
        if sys.argv[1] == "collected" or not accumulated:
            accumulated.append(gradients)
        else:
            accumulated = [[a + g for a, g in zip(accumulated[0], gradients)]]
    mean = [tf.add_n(each) / 64 for each in zip(*accumulated)]
    optimizer.apply_gradients(zip(mean, model.trainable_variables))
    print("update", update, float(loss), flush=True)
