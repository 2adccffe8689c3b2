"""A small Keras training whose memory is worth watching. It takes about a minute, on a GPU or on two CPU cores.

It does not use tfmemtop: ``python train.py`` runs it as well. Each stage first prints what it will do with memory, so
that the user can see the figures on the screen as its effect.
"""

import os
import time
from collections.abc import Iterator

# TensorFlow's messages at its start would scroll the demo's own lines away. A level that the user has set stays.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

IMAGE = (64, 64, 3)
CLASSES = 10


def build() -> keras.Model:
    """Return a convolutional classifier: about 34 MiB of weights, and activations that grow with the batch."""
    model = keras.Sequential(
        [
            keras.layers.Input(IMAGE),
            keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(CLASSES),
        ]
    )
    model.compile(
        optimizer="adam",
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,  # compiling would take longer than the training
    )
    return model


def batches(size: int) -> tf.data.Dataset:
    """Return endless batches of *size* synthetic pictures.

    They are noise. A higher class is brighter, so that there is something to learn.
    """

    def draw() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        random = np.random.default_rng(0)
        while True:
            labels = random.integers(0, CLASSES, size)
            noise = random.random((size, *IMAGE), dtype=np.float32)
            yield noise + labels[:, None, None, None].astype(np.float32) / CLASSES, labels

    signature = (tf.TensorSpec((size, *IMAGE), tf.float32), tf.TensorSpec((size,), tf.int64))
    return tf.data.Dataset.from_generator(draw, output_signature=signature).prefetch(1)


def say(text: str) -> None:
    """Print a line of the demo's own, marked so that it differs from the progress bars around it."""
    print(f"\n== {text}", flush=True)


def train(model: keras.Model, size: int, seconds: float) -> None:
    """Train three epochs with batches of *size*, with so many steps that they take about *seconds* on this machine."""
    data = batches(size)
    model.fit(data, steps_per_epoch=1, shuffle=False, verbose=0)  # traces the step for this size
    began = time.monotonic()
    model.fit(data, steps_per_epoch=3, shuffle=False, verbose=0)
    step = (time.monotonic() - began) / 3
    model.fit(data, steps_per_epoch=max(1, min(2000, round(seconds / 3 / step))), epochs=3, shuffle=False)


def main() -> None:
    """Run all stages, one after the other."""
    gpus = tf.config.list_physical_devices("GPU")
    say(f"TensorFlow {tf.__version__} on {'the GPU' if gpus else 'the CPU'}")
    model = build()
    say("Batches of 8. The first step allocates the weights, their gradients and Adam's two copies.")
    train(model, 8, 11)
    say("Batches of 32: four times the activations. The pool grows in regions, each twice the one before.")
    train(model, 32, 13)
    say("Batches of 64.")
    train(model, 64, 13)
    say("Batches of 128: the peak of the training.")
    train(model, 128, 13)
    say("Validation in batches of 640: no gradients, but very large activations. Watch the peak.")
    model.evaluate(batches(640), steps=4)
    say("Back to batches of 8: in use falls, the pool does not. TensorFlow keeps what it once took.")
    train(model, 8, 11)
    say("The training is over: in use falls to the weights and Adam's copies. The pool stays until the end.")
    time.sleep(5)  # long enough for the user to see it
    say("Done.")


if __name__ == "__main__":
    main()
