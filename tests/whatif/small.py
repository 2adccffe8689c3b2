"""A training whose batches grow, for a trace that has everything: regions that double, free chunks, several threads."""

import tensorflow as tf

LAYERS = [
    tf.keras.layers.Input((64, 64, 3)),
    tf.keras.layers.Conv2D(32, 3, activation="relu"),
    tf.keras.layers.Conv2D(32, 3, activation="relu"),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(64, name="wide"),
    tf.keras.layers.Dense(10),
]

model = tf.keras.Sequential(LAYERS)
model.compile("adam", "mse")
for batch in (8, 32, 64):
    images = tf.random.normal((batch, 64, 64, 3))
    data = tf.data.Dataset.from_tensors((images, tf.zeros((batch, 10)))).repeat()
    model.fit(data, steps_per_epoch=4, epochs=1, verbose=0)
print("done")
