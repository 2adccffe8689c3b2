"""Seconds per step of a Keras training and of an eager loop, block after block, as JSON into a file.

``python steps.py FILE SECONDS``: so many seconds of each, in blocks of half a second. A block is
longer than the time between readings, so that what a reading costs falls into every block.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf

BLOCK_S = 0.5


def training_step(on_gpu: bool) -> Callable[[], object]:
    """One step of a small convolutional net; on a GPU one of some 10 to 30 ms."""
    batch, size, width, layers = (256, 96, 64, 4) if on_gpu else (16, 32, 16, 2)
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.layers.Input((size, size, 3)),
            *(keras.layers.Conv2D(width, 3, padding="same", activation="relu") for _ in range(layers)),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    images = tf.random.uniform((batch, size, size, 3))
    labels = tf.random.uniform((batch,), 0, 10, tf.int32)
    return lambda: model.train_on_batch(images, labels)


def eager_step() -> Callable[[], object]:
    """A handful of small operations, each waited for by Python."""
    matrix = tf.random.uniform((64, 64)) / 64.0

    def step() -> object:
        x = matrix
        for _ in range(20):
            x = tf.matmul(x, matrix) + matrix
        return x.numpy()

    return step


def blocks(step: Callable[[], object], seconds: float) -> list[float]:
    """Seconds per step in each block, after one block to warm up."""
    for _ in range(3):
        step()
    taken = []
    for _ in range(max(2, round(seconds / BLOCK_S)) + 1):
        begun, steps = time.perf_counter(), 0
        while (passed := time.perf_counter() - begun) < BLOCK_S:
            step()
            steps += 1
        taken.append(passed / steps)
    return taken[1:]


def main() -> None:
    path, seconds = Path(sys.argv[1]), float(sys.argv[2])
    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    figures = {"keras": blocks(training_step(on_gpu), seconds), "eager": blocks(eager_step(), seconds)}
    path.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
