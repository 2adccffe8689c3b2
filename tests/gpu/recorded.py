"""Runs scripts on a GPU under ``tfmemtop record``, and reads what was recorded."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfmemtop import events
from tfmemtop.events import recording

PROGRAM = [sys.executable, "-m", "tfmemtop"]
MIB = 1 << 20

WORK = """
def work():
    spike = tf.zeros([768, 256, 1024])
    del spike
    weights = tf.random.normal([2048, 2048])
    images = tf.random.normal([8, 64, 64, 32])
    tf.nn.conv2d(images, tf.random.normal([3, 3, 32, 64]), 1, "SAME")
    return [weights, tf.matmul(weights, weights), tf.zeros([100, 256, 1024])]

def in_session():
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    config = v1.ConfigProto()
    config.gpu_options.allow_growth = True
    session = v1.Session(config=config)
    kept = v1.get_variable("kept", [100, 256, 1024], initializer=v1.zeros_initializer())
    session.run(kept.initializer)
    session.run(tf.matmul(tf.random.normal([2048, 2048]), tf.random.normal([2048, 2048])))
    return session, kept
"""
"""Of scripts: what uses a pool in many ways, and a session of TensorFlow 1 that holds a variable."""


def kept(folder: Path) -> Path:
    """Return the folder that ``TFMEMTOP_KEEP_RECORDINGS`` names, and *folder* if it names none."""
    named = os.environ.get("TFMEMTOP_KEEP_RECORDINGS")
    return Path(named) if named else folder


def record(
    path: Path,
    options: Sequence[str],
    *command: str,
    variables: Mapping[str, str] | None = None,
    timeout_s: float = 400,
) -> tuple["subprocess.CompletedProcess[str]", list[events.Event]]:
    """Run Python with *command* under ``tfmemtop record -o PATH``. Return how it ended, and what was recorded."""
    done = subprocess.run(
        [*PROGRAM, "record", "-o", str(path), *options, "--", sys.executable, *command],
        env={**os.environ, **(variables or {})}, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    return done, list(recording.read(path).events())


def held(said: dict[str, Any], stream: list[events.Event], settle_s: float = 0.2) -> list[events.Event]:
    """Return the events of the time in which the script held still: it *said* from when until when."""
    session = stream[0]
    assert isinstance(session, events.Session)
    began, ended = said["since"] - session.started + settle_s, said["until"] - session.started - 0.2
    return [event for event in stream if began < event.t < ended]
