"""JAX, PyTorch, CuPy and RMM on a real GPU: their figures to the byte, the account, and no change of any of them.

Run by hand: ``pytest -m gpu tests/gpu/test_frameworks.py``. A framework that is not installed is left out.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.recorded import MIB, held, kept, record
from tests.streams import fold
from tfmemtop import events
from tfmemtop.state.account import accounts

PACKAGES = {"jax": "jax", "pytorch": "torch", "cupy": "cupy", "rmm": "rmm"}
INSTALLED = [name for name, package in PACKAGES.items() if find_spec(package)]

# The script prints what the frameworks themselves say, and holds still from `since` until `until`.
USE = {
    "jax": """
import jax, jax.numpy as jnp
keep.append(jnp.ones((1024, 1024, 256)).block_until_ready())
def _jax():
    told = jax.local_devices()[0].memory_stats()
    return {"in_use": told["bytes_in_use"], "held": told["pool_bytes"], "peak": told["peak_bytes_in_use"],
            "limit": told["bytes_limit"]}
tell["jax"] = _jax
""",
    "pytorch": """
import torch
keep.append(torch.ones((1024, 1024, 128), device="cuda"))
spike = torch.ones((1024, 1024, 64), device="cuda"); del spike
tell["pytorch"] = lambda: {"in_use": torch.cuda.memory_allocated(), "held": torch.cuda.memory_reserved(),
    "peak": torch.cuda.max_memory_allocated()}
began = time.perf_counter()
for _ in range(100):
    torch.cuda.memory_stats_as_nested_dict(0)
cost["pytorch"] = (time.perf_counter() - began) / 100
""",
    "cupy": """
import cupy
keep.append(cupy.ones((1024, 1024, 64), dtype="f4"))
_pool = cupy.get_default_memory_pool()
tell["cupy"] = lambda: {"in_use": _pool.used_bytes(), "held": _pool.total_bytes()}
""",
    "rmm": """
import rmm
_layers = rmm.mr.StatisticsResourceAdaptor(rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), 1 << 28))
rmm.mr.set_current_device_resource(_layers)
keep.append(rmm.DeviceBuffer(size=1 << 27))
tell["rmm"] = lambda: {"in_use": _layers.allocation_counts.current_bytes, "held": 1 << 28,
    "peak": _layers.allocation_counts.peak_bytes}
""",
}
BEGIN = """
import json, os, sys, time
keep, tell, cost = [], {}, {}
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
"""
TENSORFLOW = """
import tensorflow as tf
tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], True)
keep.append(tf.random.normal((1024, 1024, 64)))
"""
END = """
time.sleep(2)
since = time.time()
time.sleep(4)
figures = {name: say() for name, say in tell.items()}
print(json.dumps({"since": since, "until": time.time(), "figures": figures, "cost": cost}))
"""


def watch(folder: Path, *parts: str) -> tuple[dict[str, Any], list[events.Event]]:
    """Run a script of *parts*. Return its own figures, and all events of the recording."""
    script = folder / "train.py"
    script.write_text("".join([BEGIN, *parts, END]))
    done, stream = record(kept(folder) / f"{folder.name}.jsonl", [], str(script))
    assert done.returncode == 0, done.stderr
    assert not [event for event in stream if isinstance(event, events.HookError)]
    return json.loads(done.stdout.splitlines()[-1]), stream


def check(said: dict[str, Any], stream: list[events.Event]) -> None:
    still = [event for event in held(said, stream, settle_s=1.2) if isinstance(event, events.Framework)]
    cards = {event.uuid for event in stream if isinstance(event, events.Device)}
    for name, figures in said["figures"].items():
        readings = [event for event in still if event.framework.value == name]
        times = [event.t for event in stream if isinstance(event, events.Framework) and event.framework.value == name]
        assert len(readings) >= 5 and {reading.uuid for reading in readings} <= cards, (name, said["since"], times)
        read = {figure: {getattr(reading, figure) for reading in readings} for figure in figures}
        assert read == {figure: {size} for figure, size in figures.items()}, name


@pytest.mark.parametrize("name", INSTALLED)
def test_one_alone_is_equal_to_the_byte(name: str, tmp_path: Path) -> None:
    said, stream = watch(tmp_path, USE[name])
    check(said, stream)
    print(f"{name}: {said['cost']} s a reading")
    assert all(seconds < 0.001 for seconds in said["cost"].values()), said["cost"]


def test_all_beside_tensorflow_are_equal_and_named(tmp_path: Path) -> None:
    """What is neither context nor pool nor another framework's are kernels."""
    said, stream = watch(tmp_path, TENSORFLOW, *(f"\ntime.sleep(3)\n{USE[name]}" for name in INSTALLED))
    check(said, stream)
    session = stream[0]
    assert isinstance(session, events.Session)
    state = fold(event for event in stream if event.t < said["until"] - session.started)
    assert state.run is not None
    (account,) = [one for pid in state.processes for one in accounts(state, pid) if one.pools]
    assert account.total is not None and account.outside is not None
    print(f"process total {account.total / MIB:.0f} MiB, context {(account.context or 0) / MIB:.0f}, "
          f"by framework {account.by_framework}, outside {account.outside / MIB:.0f}")  # fmt: skip
    assert {one.value for one in account.by_framework} == set(INSTALLED)
    assert account.outside <= 160 * MIB  # on an H100 124


STEPS = {
    "jax": """
import jax, jax.numpy as jnp
step = jax.jit(lambda x: jnp.tanh(x @ x) * 0.01)
x = jnp.full((2048, 2048), 0.5)
wait = lambda x: x.block_until_ready()
""",
    "pytorch": """
import torch
step = lambda x: torch.tanh(x @ x) * 0.01
x = torch.full((2048, 2048), 0.5, device="cuda")
wait = lambda x: torch.cuda.synchronize()
""",
    "cupy": """
import cupy
step = lambda x: cupy.tanh(x @ x) * 0.01
x = cupy.full((2048, 2048), 0.5, dtype="f4")
wait = lambda x: cupy.cuda.Device().synchronize()
""",
}
TRAINED = """
for _ in range(500):
    x = step(x)
wait(x)
print(float(x[0, 0]), x.shape, x.dtype)
"""


@pytest.mark.parametrize("name", [name for name in INSTALLED if name in STEPS])
def test_a_training_is_alike_bare_and_recorded(name: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(STEPS[name] + TRAINED)
    bare = subprocess.run(
        [sys.executable, str(script)], env=os.environ, capture_output=True, text=True, check=True, timeout=500
    )
    done, _ = record(kept(tmp_path) / f"{name}.jsonl", [], str(script))
    assert (done.returncode, done.stdout) == (0, bare.stdout)
