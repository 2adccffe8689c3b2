"""The pools of a real GPU are read exact to the byte, without a compiler.

These tests are run by hand: ``pytest -m gpu tests/gpu/test_no_compiler.py``.

Two other readers give the figures to compare with: the probe, which the script itself loads, and TensorFlow's own
``get_memory_info``.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.conftest import build_probe
from tests.gpu.recorded import WORK, held, kept, record
from tfmemtop import events
from tfmemtop.probe.cache import checksum_of

ROOT = Path(__file__).parents[2]

SCRIPT = (
    """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
import tensorflow as tf
from tfmemtop.agent.native import Native
from tfmemtop.agent.trust import CPU, GPU, PINNED
options = set(sys.argv[4:])
"""
    + WORK
    + """
session = None
if "session" in options:
    kept = session = in_session()
else:
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus if "growth" in options else []:
        tf.config.experimental.set_memory_growth(gpu, True)
    if "limit" in options:
        tf.config.set_logical_device_configuration(gpus[0], [tf.config.LogicalDeviceConfiguration(memory_limit=4096)])
    if "split" in options:
        tf.config.set_logical_device_configuration(
            gpus[0], [tf.config.LogicalDeviceConfiguration(memory_limit=2048)] * 2)
    kept = []
    for device in tf.config.list_logical_devices("GPU"):
        with tf.device(device.name):
            pieces = [tf.zeros([(1 + number % 97) << 8]) for number in range(2000)]
            kept += [*work(), pieces]
            del pieces[::3]
            tf.zeros([16]).numpy()
time.sleep(2)  # for readings, and maps once a second
since = time.time()
time.sleep(3)
native = Native(sys.argv[2], int(sys.argv[3]))
figures = {}
for kind, index, name in [*((GPU, index, f"GPU:{index}") for index in range(native.gpus())), (PINNED, 0, "HOST:0")]:
    taken = native.take(kind, index)
    if taken is None:
        continue
    public = None
    if kind == GPU and session is None:
        public = tf.config.experimental.get_memory_info(name)
        public = [public["current"], public["peak"]]
    figures[name] = {"native": [taken.name, *taken.reading[:6]], "public": public}
print(json.dumps({"since": since, "until": time.time(), "figures": figures}))
"""
)

CASES = {
    "nothing-set": ([], {}),
    "growth": (["growth"], {}),
    "limit": (["limit"], {}),
    "growth-forced": ([], {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}),
    "two-logical-devices": (["split"], {}),
    "session": (["session"], {}),
    "cuda_malloc_async": ([], {"TF_GPU_ALLOCATOR": "cuda_malloc_async"}),
}


@pytest.fixture(scope="module")
def library() -> Path:
    """Build the probe with which the script compares. tfmemtop itself is started without a compiler and a cache."""
    return Path(build_probe().path)


def watch(folder: Path, library: Path, name: str) -> tuple[dict[str, Any], list[events.Event]]:
    """Run the script. Return its own figures, and all events of the recording."""
    arguments, variables = CASES[name]
    path = kept(folder) / f"no-compiler-{name}.jsonl"
    script = folder / "train.py"
    script.write_text(SCRIPT)
    # TensorFlow searches PATH for CUDA's own tools. Only a C++ compiler is to be missing for tfmemtop.
    alone = {"PATH": "/nowhere", "CXX": "/nowhere/c++", "XDG_CACHE_HOME": str(folder / "cache")}
    library_words = (str(ROOT), str(library), str(checksum_of(library.read_bytes())))
    done, stream = record(
        path, (), str(script), *library_words, *arguments, variables={"TF_CPP_MIN_LOG_LEVEL": "2", **variables, **alone}
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout), stream


@pytest.mark.parametrize("name", CASES)
def test_pools_are_read_to_the_byte_without_a_compiler(name: str, library: Path, tmp_path: Path) -> None:
    said, stream = watch(tmp_path, library, name)
    probes = [event.state for event in stream if isinstance(event, events.Probe)]
    asynchronous = name == "cuda_malloc_async"
    # If TensorFlow has made a pinned pool, that one is always a BFC pool.
    unavailable, direct = events.ProbeState.UNAVAILABLE, events.ProbeState.DIRECT
    assert probes == [unavailable, direct] or (asynchronous and probes == [unavailable])
    assert not [event for event in stream if isinstance(event, events.HookError)]
    still = held(said, stream)
    effective = {event.device: event for event in stream if isinstance(event, events.Effective)}
    assert said["figures"] and "GPU:0" in effective
    if name != "two-logical-devices":
        assert effective["GPU:0"].uuid is not None
    for device, figures in said["figures"].items():
        _, *native = figures["native"]
        if not native[2]:
            continue  # an empty pool cannot prove the table of places right, and so is not read in place
        readings = [event for event in still if isinstance(event, events.Allocator) and event.device == device]
        assert len(readings) >= 15
        told = {(one.in_use, one.peak, one.pool, one.limit, one.peak_pool, one.allocations) for one in readings}
        if asynchronous and device.startswith("GPU"):
            assert {one[:3] for one in told} == {(*native[:2], None)}
            continue
        assert told == {tuple(native)}
        assert figures["public"] is None or native[:2] == figures["public"]
        assert {one.allocator for one in readings} == {figures["native"][0]}
        read = [event for event in stream if isinstance(event, events.Allocator) and event.device == device]
        first = next(event for event in read if event.in_use)
        assert first.limit == native[3] and first.pool is not None

        maps = [event for event in stream if isinstance(event, events.MemoryMap) and event.device == device]
        assert maps and not any(event.is_missing for event in maps)
        if device in effective:
            # TensorFlow needs up to three seconds to take the whole of a large GPU; before that there is no pool.
            assert maps[0].t - max(effective[device].t, first.t) < 1.5  # a map a second
        (found,) = {
            (one.pool, one.in_use, one.chunks, one.chunks_in_use, one.largest_free, one.cells, tuple(one.sizes))
            for one in maps
            if one in still
        }
        assert found[:2] == (native[2], native[0])
        print(f"{name} {device}: {native}, map read in {maps[-1].cost_us} µs")
    if asynchronous:
        missing = [event for event in stream if isinstance(event, events.MemoryMap) and event.is_missing]
        assert [event.device for event in missing] == ["GPU:0"]
