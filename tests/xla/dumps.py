"""Reports that XLA of TensorFlow 2.21 really wrote on a CPU, and the clusters that are made of them.

``keras``: a step of a small convolutional Keras model with Adam, ``jit_compile=True``, batches of 32 images of 64×64.
``loop``: a function with a loop of five matrix products, a sort and a ``top_k``.
"""

import gzip
from pathlib import Path

from tfmemtop.engine.sources.xla_cluster import make_cluster
from tfmemtop.events import XlaCluster

FOLDER = Path(__file__).parent
KERAS, LOOP = "keras", "loop"
MODULES = {KERAS: "a_inference_one_step_on_data_1421__.9", LOOP: "a_inference_refine_147__XlaMustCompile_true_.12"}


def assignment(name: str) -> list[str]:
    """Return the lines of the buffer assignment of the report *name*."""
    return _lines(f"{name}.buffer-assignment")


def module(name: str) -> list[str]:
    """Return the lines of the text of its module."""
    return _lines(f"{name}.module")


def cluster(name: str, lines: list[str] | None = None, text: list[str] | None = None) -> XlaCluster:
    """Return the cluster *name*. *lines* and *text* replace its buffer assignment and the text of its module."""
    lines = assignment(name) if lines is None else lines
    text = module(name) if text is None else text
    found = make_cluster(lines, text, pid=7, name=MODULES[name], module=72, t=1.0)
    assert found is not None
    return found


def _lines(file: str) -> list[str]:
    return gzip.decompress((FOLDER / f"{file}.txt.gz").read_bytes()).decode().splitlines()
