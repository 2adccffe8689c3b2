"""Steps in and outside windows of allocations, in turns: ``python windows.py LIBRARY CHECKSUM FOLDER ROUNDS``.

Prints a line of JSON for each kind of step: its rounds, each the seconds of a step before a window, within it, and
after it, the events of allocators in a step, and what the window says that it cost a step.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf

from tfmemtop.agent.native import Native
from tfmemtop.agent.native_windows import BY_TIME, Limits, NativeWindows
from tfmemtop.agent.trust import CPU, GPU

BLOCK_S = 0.15
LIMITS = Limits(steps=0, seconds=60.0, allocations=10**7, events=10**8, size=1 << 30, pause_s=0.001)


def convolutions() -> Callable[[], object]:
    """A step of a small convolutional net, not compiled by XLA: some 100 allocations."""
    keras.utils.set_random_seed(1)
    layers = (keras.layers.Conv2D(16, 3, padding="same", activation="relu") for _ in range(2))
    model = keras.Sequential(
        [keras.layers.Input((32, 32, 3)), *layers, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    images, labels = tf.random.uniform((16, 32, 32, 3)), tf.random.uniform((16,), 0, 10, tf.int32)
    return lambda: model.train_on_batch(images, labels)


def eager() -> Callable[[], object]:
    """Forty small eager operations: next to nothing but events."""
    matrix = tf.random.uniform((64, 64)) / 64.0

    def step() -> object:
        x = matrix
        for _ in range(20):
            x = tf.matmul(x, matrix) + matrix
        return x.numpy()

    return step


def repeat(step: Callable[[], object]) -> tuple[float, int]:
    """Seconds of a step, and how many there were."""
    begun, steps, passed = time.perf_counter(), 0, 0.0
    while passed < BLOCK_S:
        step()
        steps += 1
        passed = time.perf_counter() - begun
    return passed / steps, steps


def main() -> None:
    """Measure both kinds."""
    library, checksum, folder, rounds = sys.argv[1:]
    windows = NativeWindows(Native(library, int(checksum)).library)
    place = (GPU, 0) if tf.config.list_physical_devices("GPU") else (CPU, 0)
    for kind, step in {"keras": convolutions(), "eager": eager()}.items():
        for _ in range(5):
            step()
        taken, allocations, cost_s = [], 0.0, 0.0
        for number in range(int(rounds)):
            path = Path(folder, f"{kind}.{number}.window")
            before, _ = repeat(step)
            if not windows.start(str(path), [place], "", LIMITS):
                raise RuntimeError("no window could be opened")
            within, steps = repeat(step)
            windows.end(BY_TIME)
            while (found := windows.progress()) is not None and found.running:
                time.sleep(0.001)
            after, _ = repeat(step)
            path.unlink()
            assert found is not None
            assert found.allocations
            taken.append((before, within, after))
            allocations, cost_s = found.allocations / steps, found.cost_s / steps
        print(json.dumps({"kind": kind, "rounds": taken, "allocations": allocations, "cost_s": cost_s}), flush=True)


if __name__ == "__main__":
    main()
