"""Volumes are cut into patches by flat_map, which keeps each volume whole until its last patch is used."""

import sys

import tensorflow as tf

PATCHES = int(sys.argv[1])


def patches(number):
    volume = tf.random.stateless_normal([PATCHES, 64, 64, 16], [number, 0])
    return tf.data.Dataset.from_tensor_slices(volume)


data = tf.data.Dataset.range(8000 // PATCHES).flat_map(patches).map(lambda patch: (patch, [0.0])).batch(8)
model = tf.keras.Sequential([tf.keras.layers.Conv2D(8, 3), tf.keras.layers.GlobalAveragePooling2D()])
model.add(tf.keras.layers.Dense(1))
model.compile("adam", "mse")
model.fit(data, steps_per_epoch=40, epochs=2, verbose=2)
