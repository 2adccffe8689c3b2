"""A small convolutional network, trained by Keras with two batch sizes."""

import tensorflow as tf

layers = [tf.keras.layers.Conv2D(filters, 3, activation="relu") for filters in (16, 32)]
model = tf.keras.Sequential([tf.keras.layers.Input((40, 40, 3)), *layers, tf.keras.layers.Flatten()])
model.add(tf.keras.layers.Dense(10))
model.compile("adam", "mse")
for batch in (16, 96):
    images = tf.random.normal((batch, 40, 40, 3))
    data = tf.data.Dataset.from_tensors((images, tf.zeros((batch, 10)))).repeat()
    model.fit(data, steps_per_epoch=12, epochs=1, verbose=0)
print("done")
