# a fast leak in a run of 25 s: losses for each element are kept in a list, or the mean of each step
import sys
import time

import keras
import tensorflow as tf

layers = [keras.layers.Dense(512, activation="relu"), keras.layers.Dense(256)]
model = keras.Sequential([keras.layers.Input((256,)), *layers])
optimizer = keras.optimizers.Adam(1e-3)
history = []


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.square(model(x, training=True) - x)
        mean = tf.reduce_mean(loss)
    optimizer.apply_gradients(zip(tape.gradient(mean, model.trainable_variables), model.trainable_variables))
    return loss


for i in range(600):
    loss = step(tf.random.normal((512, 256)))
    history.append(float(tf.reduce_mean(loss)) if sys.argv[1] == "means" else loss)  # 512 KiB a step
    if i % 50 == 0:
        print("step", i, float(tf.reduce_mean(loss)), flush=True)
    time.sleep(0.03)
