# after keras#2689, datasets#2696: the model of each fold is kept, to be averaged at the end, or only written to a file
import sys
import tempfile

import numpy as np
import tensorflow as tf


def make():
    layers = [tf.keras.layers.Dense(2048, activation="relu") for _ in range(2)]
    return tf.keras.Sequential([tf.keras.layers.Input((256,)), *layers, tf.keras.layers.Dense(1)])


x, y = np.random.rand(1000, 256).astype("float32"), np.random.rand(1000, 1).astype("float32")
folder = tempfile.mkdtemp()
folds = {}
for fold, held_out in enumerate(np.array_split(np.arange(1000), 20)):
    model, optimizer = make(), tf.keras.optimizers.Adam()
    for rows in np.array_split(np.setdiff1d(np.arange(1000), held_out), 5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x[rows]) - y[rows]))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    if sys.argv[1] == "kept":
        folds[fold] = model, optimizer
    else:
        model.save_weights(f"{folder}/{fold}.weights.h5")
    print("fold", fold, float(loss), flush=True)
