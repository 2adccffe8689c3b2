"""A random search over widths and depths. Argument 1: what a trial keeps, ``model`` or ``score``.

With ``score`` the models run eagerly, since TensorFlow keeps the variables of a function that Keras compiled.
"""

import gc
import random
import sys
from dataclasses import dataclass

import keras
import numpy as np


@dataclass
class Trial:
    """What was tried, and what came of it."""

    widths: list[int]
    score: float
    model: keras.Model | None


def build(widths: list[int]) -> keras.Model:
    """Return a model with a hidden layer of each width."""
    hidden = [keras.layers.Dense(width, activation="relu") for width in widths]
    model = keras.Sequential([keras.Input((256,)), *hidden, keras.layers.Dense(1)])
    model.compile("adam", "mse", run_eagerly=sys.argv[1] == "score")
    return model


random.seed(1)
rows = np.random.rand(256, 256).astype("float32")
trials: list[Trial] = []
for _ in range(20):
    widths = [random.choice([768, 1024, 1280]) for _ in range(random.choice([2, 3]))]
    model = build(widths)
    score = model.fit(rows, rows.sum(axis=1), epochs=2, batch_size=64, verbose=0).history["loss"][-1]
    trials.append(Trial(widths, score, model if sys.argv[1] == "model" else None))
    gc.collect()
print("best:", min(trials, key=lambda trial: trial.score).widths)
