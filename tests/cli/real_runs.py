"""Recordings of real scripts, each made once for all tests that use it."""

import os
import subprocess
import sys
from pathlib import Path

from tests import sparing
from tests.once import once
from tests.patience import PATIENCE_S

OURS = [sys.executable, "-m", "tfmemtop"]

MISTAKES = """
import tensorflow as tf
weights = tf.Variable([1.0])
try:
    tf.config.set_visible_devices([], "CPU")
except RuntimeError:
    pass

@tf.function
def step(x, n):
    return x * n

for n in range(12):
    step(tf.ones(4), n)
"""


def line_of(text: str) -> int:
    """Return the number of the line of MISTAKES that begins with *text*."""
    return next(number for number, line in enumerate(MISTAKES.splitlines(), 1) if line.strip().startswith(text))


def recorded(shared: Path, name: str, source: str) -> Path:
    """Return a folder with ``run.jsonl``, the recording of a run of *source*, and ``said``, what ``record`` printed."""

    def record(folder: Path) -> None:
        script, path = folder / "train.py", folder / "run.jsonl"
        script.write_text(source)
        command = [*OURS, "record", "-o", str(path), "--no-probe", "--", sys.executable, str(script)]
        variables = os.environ | sparing.variables(source)
        done = subprocess.run(command, check=True, timeout=PATIENCE_S, stderr=subprocess.PIPE, text=True, env=variables)
        (folder / "said").write_text(done.stderr)

    return once(shared, name, record)
