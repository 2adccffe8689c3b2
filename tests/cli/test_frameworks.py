"""Keras on JAX and on PyTorch, on the CPU, where they are installed: recorded, judged, and as they are without us."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.hooked import PYTHON
from tests.starting import ran, tfmemtop
from tfmemtop.events import recording
from tfmemtop.findings.review import RunReview, review, verdict

pytestmark = pytest.mark.programs

TITLES = {"jax": "JAX", "torch": "PyTorch"}

TRAINING = """
import sys
import keras
import numpy as np

ones = {"kernel_initializer": "ones"}  # keras.utils.set_random_seed would import TensorFlow
model = keras.Sequential([keras.layers.Dense(32, activation="relu", **ones), keras.layers.Dense(1, **ones)])
model.compile("adam", "mse")
data = np.random.default_rng(1).random((256, 16), "float32")
print(keras.backend.backend(), model.fit(data, data.sum(1), epochs=2, verbose=0, shuffle=False).history["loss"])
print([name for name in ("tensorflow", "jax", "torch") if name in sys.modules])
"""

FAILING = {
    "jax": """
import jax
def step():
    raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8.00GiB.")
step()
""",
    "torch": """
import torch
def step():
    raise torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 1.50 GiB is "
        "free. Including non-PyTorch memory, this process has 78.00 GiB memory in use. Of the allocated memory 76.00 "
        "GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated."
    )
step()
""",
}
EXPECTED = {
    "jax": "Out of memory: JAX at train.py:4 asked for 8.0 GiB.",
    "torch": "Out of memory: PyTorch at train.py:4 asked for 4.0 GiB. Of the card's 80.0 GiB, ",
}


@pytest.fixture(params=TITLES)
def framework(request: pytest.FixtureRequest) -> str:
    found = f"import sys, importlib.util as u; sys.exit(not (u.find_spec('{request.param}') and u.find_spec('keras')))"
    if subprocess.run([PYTHON, "-c", found]).returncode:
        pytest.skip(f"Keras and {request.param} are not installed")
    return str(request.param)


def recorded(folder: Path, source: str, framework: str) -> "tuple[subprocess.CompletedProcess[str], RunReview]":
    script, path = folder / "train.py", folder / "run.jsonl"
    script.write_text(source)
    done = tfmemtop("record", "-o", str(path), "--", PYTHON, str(script), variables={"KERAS_BACKEND": framework})
    return done, review(recording.read(path).events())


def test_a_training_is_recorded_and_is_as_without_tfmemtop(framework: str, tmp_path: Path) -> None:
    done, seen = recorded(tmp_path, TRAINING, framework)
    bare = ran([PYTHON, str(tmp_path / "train.py")], env=os.environ | {"KERAS_BACKEND": framework})  # fmt: skip
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout)
    assert done.returncode == 0 and "tensorflow" not in done.stdout
    found = verdict(seen)
    assert found is not None
    if not seen.state.devices:
        assert found.text.startswith("Nothing was measured: on the CPU, there is no pool of ")
        assert TITLES[framework] in found.text  # Keras imports JAX also on PyTorch


def test_its_failure_is_the_verdict_with_the_line(framework: str, tmp_path: Path) -> None:
    done, seen = recorded(tmp_path, FAILING[framework], framework)
    assert done.returncode == 1 and EXPECTED[framework] in done.stderr
    found = verdict(seen)
    assert found is not None and found.text.startswith(EXPECTED[framework])
