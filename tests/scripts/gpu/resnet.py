"""ResNet-50 on pictures of noise: ``python resnet.py JIT SECONDS``, where JIT is ``on``, ``off`` or ``auto``."""

import sys
import time

import tensorflow as tf

BATCH = 64
jit = {"on": True, "off": False, "auto": "auto"}[sys.argv[1]]
ends = time.monotonic() + float(sys.argv[2])
model = tf.keras.applications.ResNet50(weights=None, classes=1000)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", jit_compile=jit)
pictures = tf.random.uniform([BATCH, 224, 224, 3]), tf.random.uniform([BATCH], 0, 1000, tf.int32)
data = tf.data.Dataset.from_tensors(pictures).repeat()


class Until(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Ends the training in time."""

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        """Stop if the time is up."""
        self.model.stop_training = time.monotonic() > ends


model.fit(data, steps_per_epoch=20, epochs=100000, verbose=0, callbacks=[Until()])
