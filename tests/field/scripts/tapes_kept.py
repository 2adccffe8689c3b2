# persistent tapes, one for each step, are collected for a report of the gradients at the end
import sys

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1024, activation="relu"), tf.keras.layers.Dense(1024)])
tapes = []
for step in range(200):
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(tf.square(model(tf.random.normal([512, 256]))))
    gradients = tape.gradient(loss, model.trainable_variables)
    tapes.append((tape, loss))
    if sys.argv[1] == "last":
        tapes = tapes[-1:]
    if step % 20 == 0:
        print("step", step, float(loss), flush=True)
