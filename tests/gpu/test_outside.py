"""Pools of a real GPU are read from outside, exact to the byte.

These tests are run by hand: ``pytest -m gpu tests/gpu/test_outside.py``. The script is started without tfmemtop. At
each checkpoint it prints the figures of TensorFlow's own ``get_memory_info``, and then waits until its pools have been
read.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tfmemtop.engine.sources.chunk_maps import read_chunks
from tfmemtop.engine.sources.outside.following import chunks_of
from tfmemtop.engine.sources.outside.look import Look
from tfmemtop.events import OutsideState

ROOT = Path(__file__).parents[2]
MIB = 1 << 20

SCRIPT = """
import json, sys
import tensorflow as tf
options = set(sys.argv[1:])

def checkpoint():
    names = [f"GPU:{index}" for index in range(len(tf.config.list_logical_devices("GPU")))]
    infos = {name: tf.config.experimental.get_memory_info(name) for name in names}
    print(json.dumps({name: [info["current"], info["peak"]] for name, info in infos.items()}), flush=True)
    sys.stdin.readline()

gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus if "growth" in options else []:
    tf.config.experimental.set_memory_growth(gpu, True)
if "limit" in options:
    tf.config.set_logical_device_configuration(gpus[0], [tf.config.LogicalDeviceConfiguration(memory_limit=4096)])
if "split" in options:
    tf.config.set_logical_device_configuration(gpus[0], [tf.config.LogicalDeviceConfiguration(memory_limit=2048)] * 2)
kept = []
for device in tf.config.list_logical_devices("GPU"):
    with tf.device(device.name):
        kept.append(tf.zeros([100, 256, 1024]))
        tf.zeros([16]).numpy()
checkpoint()
for device in tf.config.list_logical_devices("GPU"):
    with tf.device(device.name):
        spike = tf.zeros([512, 256, 1024])
        del spike
        weights = tf.random.normal([2048, 2048])
        kept += [weights, tf.matmul(weights, weights)]
        kept += [tf.zeros([(1 + number % 97) << 8]) for number in range(2000)][::3]
        tf.zeros([16]).numpy()
checkpoint()
del kept[::2]
tf.zeros([16]).numpy()
checkpoint()
"""

CASES: dict[str, tuple[list[str], dict[str, str], list[int | None], bool | None]] = {
    "nothing-set": ([], {}, [None], False),
    "growth": (["growth"], {}, [None], True),
    "limit": (["limit"], {}, [4096 * MIB], False),
    "growth-forced": ([], {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, [None], True),
    "two-logical-devices": (["split"], {}, [2048 * MIB] * 2, False),
}
"""For each case: options, environment variables, limits (``None``: TensorFlow's own), and whether the pools grow."""


class Script:
    """A script that waits at each checkpoint after it has printed its figures."""

    def __init__(self, options: list[str], variables: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *options],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **variables},
            stdin=pipe,
            stdout=pipe,
            text=True,
        )

    def checkpoints(self) -> Iterator[dict[str, Any]]:
        """Yield the figures of each checkpoint. The script goes on when the next ones are requested."""
        assert self.process.stdin is not None and self.process.stdout is not None
        for line in self.process.stdout:
            yield json.loads(line)
            self.process.stdin.write("\n")
            self.process.stdin.flush()


@pytest.mark.parametrize("name", CASES)
def test_every_checkpoint_is_equal_to_the_byte(name: str, tmp_path: Path) -> None:
    options, variables, limits, grows = CASES[name]
    script = Script(options, variables)
    look = Look(script.process.pid)
    seen = 0
    for said in script.checkpoints():
        seen += 1
        assert look.refresh().state is OutsideState.READING
        figures = look.read()
        assert {device: [one.in_use, one.peak] for device, (_, one) in figures.items() if device in said} == said
        assert len(said) == len(limits)
        for device, limit in zip(said, limits, strict=True):
            named, one = figures[device]
            assert named == f"GPU_{device[4:]}_bfc"
            assert one.pool is not None and one.in_use <= one.pool <= (one.peak_pool or 0) <= (one.limit or 0)
            assert limit is None or one.limit == limit
            assert look.grows(device) is grows
            copy = look.copy(device)
            assert copy is not None and look.layout is not None
            told = chunks_of(look.pid, look.layout, device, copy, [], 0)
            (tmp_path / f"{look.pid}.{device}.live.chunks").write_bytes(copy.regions + copy.chunks)
            pieces, _ = read_chunks(tmp_path, told)  # raises if they do not add up
            assert sum(piece.size for piece in pieces if piece.in_use) == one.in_use
    assert seen == 3 and script.process.wait() == 0


def test_cuda_malloc_async_keeps_no_pool_and_once_says_so() -> None:
    script = Script([], {"TF_GPU_ALLOCATOR": "cuda_malloc_async"})
    for _ in script.checkpoints():
        look = Look(script.process.pid)
        look.refresh()
        # If TensorFlow has made a pinned host pool, that one is always a BFC pool.
        assert set(look.read()) <= {"HOST:0"}
        done = subprocess.run(
            [sys.executable, "-m", "tfmemtop", "--once", "--json"], stdout=subprocess.PIPE, cwd=ROOT, check=True
        )
        told = [json.loads(line) for line in done.stdout.splitlines()]
        assert any(one["type"] == "outside" and one["pid"] == look.pid for one in told)
    assert script.process.wait() == 0
