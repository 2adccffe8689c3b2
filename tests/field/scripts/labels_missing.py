# a healthy training, whose data set is cached in its first epoch, and then a file that is not there
import json
import pathlib
import sys

import tensorflow as tf


def decode(index):
    return tf.random.stateless_uniform([64, 64, 3], tf.stack([tf.cast(index, tf.int32), 2])), index % 4


data = tf.data.Dataset.range(2000).map(decode).cache().batch(32).prefetch(1)
model = tf.keras.Sequential(
    [
        tf.keras.Input([64, 64, 3]),
        tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(4),
    ]
)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=6, verbose=2)
print(len(json.loads(pathlib.Path(sys.argv[1]).read_text())))
