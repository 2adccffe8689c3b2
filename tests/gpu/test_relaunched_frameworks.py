"""Two keys relaunch a Keras training on JAX, and one on PyTorch, with another share of the card."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.recorded import record
from tests.starting import Start, ended
from tfmemtop import events
from tfmemtop.events import recording
from tfmemtop.findings.review import review
from tfmemtop.findings.rules.frameworks import CardShared
from tfmemtop.frameworks import FrameworkName

TRAINING = """
import os, time
import keras, numpy as np
model = keras.Sequential([keras.layers.Dense(256, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
data = np.random.default_rng(1).random((4096, 64), "float32")
for epoch in range(600):
    model.fit(data, data.sum(1), epochs=1, verbose=0, batch_size=512)
    if epoch == 2:
        if keras.backend.backend() == "jax":
            import jax
            told = jax.local_devices()[0].memory_stats()["bytes_limit"]
        else:
            import torch
            told = torch.cuda.get_per_process_memory_fraction(0) * torch.cuda.get_device_properties(0).total_memory
        print(f"limit={int(told)} of {os.getpid()}.", flush=True)
    time.sleep(0.05)
"""

NAMES = {"jax": FrameworkName.JAX, "torch": FrameworkName.PYTORCH}


@pytest.mark.parametrize("backend", NAMES)
def test_a_training_is_relaunched_with_a_quarter_of_the_card(backend: str, start: Start, home: Path) -> None:
    if subprocess.run([sys.executable, "-c", f"import keras, {backend}"], check=False).returncode:
        pytest.skip(f"Keras and {backend} are not installed")
    (home / "train.py").write_text(TRAINING)
    command = ("--record", "run.jsonl", "--", sys.executable, "train.py")
    child = start(*command, size=(160, 48), KERAS_BACKEND=backend)
    child.expect(r"limit=\d+ of (\d+)\.")
    assert isinstance(child.match, re.Match)
    before = child.match[1]
    child.send("L")
    child.expect("Memory limit of the next run")
    child.send("\x1525%\r")
    child.expect(r"next: (\x1b\[[\d;]*m)*limit")
    child.send("R")
    child.expect("is still running")
    child.send("r")
    child.expect(rf"limit=(\d+) of (?!{before}\.)\d+\.")  # not the first run's line, drawn anew
    assert isinstance(child.match, re.Match)
    limit = int(child.match[1])
    child.send("q")
    child.expect("The script is still running")
    child.send("s")
    ended(child)
    stream = list(recording.read(home / "run.jsonl").events())
    first, second = [event for event in stream if isinstance(event, events.Run)]
    assert not first.settings.frameworks and [one.name for one in second.settings.frameworks] == [NAMES[backend]]
    card = next(event.total for event in stream if isinstance(event, events.Device))
    assert card is not None and 0.24 * card < limit <= 0.25 * card
    readings = [event for event in stream if isinstance(event, events.Framework) and event.t > second.t]
    assert readings and readings[-1].limit == limit


@pytest.mark.parametrize("backend", NAMES)
def test_an_option_sets_the_first_run(backend: str, tmp_path: Path) -> None:
    if subprocess.run([sys.executable, "-c", f"import keras, {backend}"], check=False).returncode:
        pytest.skip(f"Keras and {backend} are not installed")
    (tmp_path / "train.py").write_text(TRAINING.replace("range(600)", "range(4)"))
    options = ("--memory-limit", "25%")
    variables = {"KERAS_BACKEND": backend}
    done, stream = record(tmp_path / "run.jsonl", options, str(tmp_path / "train.py"), variables=variables)
    told = re.search(r"limit=(\d+)", done.stdout)
    card = next(event.total for event in stream if isinstance(event, events.Device))
    assert card is not None and told is not None and 0.24 * card < int(told[1]) <= 0.25 * card, done.stderr


BOTH = """
import time
import tensorflow as tf
x = tf.ones([256, 256])
import jax.numpy as jnp
try:
    y = jnp.ones((64 << 20,)); y.block_until_ready()
except Exception as error:
    print(str(error)[:200])
time.sleep(3)
"""


def test_tensorflow_that_took_the_card_before_jax_is_named_with_its_line(tmp_path: Path) -> None:
    if subprocess.run([sys.executable, "-c", "import tensorflow, jax"], check=False).returncode:
        pytest.skip("TensorFlow and JAX are not both installed")
    (tmp_path / "both.py").write_text(BOTH)
    done, stream = record(tmp_path / "run.jsonl", (), str(tmp_path / "both.py"))
    assert done.returncode == 0, done.stderr[-2000:]
    (shared,) = [held.finding for held in review(stream).held if isinstance(held.finding, CardShared)]
    assert shared.first.title == "TensorFlow" and shared.first.at is not None and shared.first.at.line == 4
    assert shared.other.title == "JAX"


def test_its_remedy_frees_the_card_for_jax(tmp_path: Path) -> None:
    """What the finding advises is tried: with both remedies, JAX computes, and the finding is gone."""
    if subprocess.run([sys.executable, "-c", "import tensorflow, jax"], check=False).returncode:
        pytest.skip("TensorFlow and JAX are not both installed")
    hidden = BOTH.replace("x = tf", 'tf.config.set_visible_devices([], "GPU")\nx = tf')
    (tmp_path / "both.py").write_text(hidden)
    done, stream = record(tmp_path / "run.jsonl", (), str(tmp_path / "both.py"))
    assert done.returncode == 0 and done.stdout == "", done.stdout
    assert not [held for held in review(stream).held if isinstance(held.finding, CardShared)]
