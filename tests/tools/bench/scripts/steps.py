"""A Keras training and an eager loop. The bench requests a block of one or the other.

``python steps.py SOCKET`` reads ``keras`` or ``eager`` from the unix socket, and answers with the seconds that a step
took in a block of a second. It ends when the socket is closed. A block is as long as the time between two frames of
the live screen, so that the cost of a frame is in every block.
"""

import socket
import sys
import time
from collections.abc import Callable

import keras
import tensorflow as tf

SETTLE_S, BLOCK_S = 0.3, 1.0


def training_step(on_gpu: bool, jit_compile: bool | str = "auto") -> Callable[[], object]:
    """Return a function that makes one step of a small convolutional net.

    On a GPU a step takes some 10 to 30 ms. *jit_compile* is passed to Keras.
    """
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
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, jit_compile=jit_compile)
    images = tf.random.uniform((batch, size, size, 3))
    labels = tf.random.uniform((batch,), 0, 10, tf.int32)
    return lambda: model.train_on_batch(images, labels)


def eager_step() -> Callable[[], object]:
    """Return a function that makes forty small operations and reads their result in Python.

    Such a step is next to nothing but events of the allocator.
    """
    matrix = tf.random.uniform((64, 64)) / 64.0

    def step() -> object:
        x = matrix
        for _ in range(20):
            x = tf.matmul(x, matrix) + matrix
        return x.numpy()

    return step


def repeat(step: Callable[[], object], seconds: float) -> tuple[float, int]:
    """Repeat *step* for *seconds* seconds. Return the seconds of a step, and how many steps there were."""
    begun, steps, passed = time.perf_counter(), 0, 0.0
    while passed < seconds:
        step()
        steps += 1
        passed = time.perf_counter() - begun
    return passed / steps, steps


def main() -> None:
    steps = {"keras": training_step(bool(tf.config.list_physical_devices("GPU"))), "eager": eager_step()}
    for step in steps.values():
        repeat(step, 1.0)
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rw") as asked:
        connection.connect(sys.argv[1])
        for kind in asked:
            step = steps[kind.strip()]
            repeat(step, SETTLE_S)
            print(repeat(step, BLOCK_S)[0], file=asked, flush=True)


if __name__ == "__main__":
    main()
