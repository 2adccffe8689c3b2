"""The probe reads the pools of real GPUs.

Run by hand: ``pytest -m gpu tests/gpu/test_pools.py``, or with ``-m gpus2`` on two GPUs.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.recorded import MIB, WORK, held, kept, record
from tfmemtop import events

pytestmark = pytest.mark.usefixtures("built")

# The script prints the true figures: the same statistics, read by its own library, built with TensorFlow's own flags.
SCRIPT = (
    """
import ctypes, json, subprocess, sys, time
import tensorflow as tf

TRUTH = '''
#define GOOGLE_CUDA 1
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
extern "C" int truth(int index, long* out) {
  auto* state = tensorflow::GPUProcessState::singleton();
  if (state->NumGPUAllocators() <= index) return 0;
  auto stats = state->GetGPUAllocator(tsl::TfDeviceId(index))->GetStats();
  out[0] = stats->bytes_in_use;
  out[1] = stats->peak_bytes_in_use;
  out[2] = stats->pool_bytes ? *stats->pool_bytes : -1;
  out[3] = stats->peak_pool_bytes ? *stats->peak_pool_bytes : -1;
  out[4] = stats->bytes_limit ? *stats->bytes_limit : -1;
  out[5] = stats->num_allocs;
  return 1;
}
'''
options = set(sys.argv[2:])
path = sys.argv[1]
subprocess.run(
    ["g++", "-w", "-O1", "-shared", "-fPIC", "-x", "c++", "-", "-o", path, *tf.sysconfig.get_compile_flags(),
     *tf.sysconfig.get_link_flags()], input=TRUTH.encode(), check=True)
library = ctypes.CDLL(path)
"""
    + WORK
    + """
if "session" in options:
    kept = in_session()
else:
    for gpu in tf.config.list_physical_devices("GPU") if "growth" in options else []:
        tf.config.experimental.set_memory_growth(gpu, True)
    if "split" in options:
        first = tf.config.list_physical_devices("GPU")[0]
        tf.config.set_logical_device_configuration(
            first, [tf.config.LogicalDeviceConfiguration(memory_limit=2048)] * 2)
    if "mirrored" in options:
        strategy = tf.distribute.MirroredStrategy()
        with strategy.scope():
            model = tf.keras.Sequential([tf.keras.layers.Dense(1024), tf.keras.layers.Dense(1)])
            model.compile("sgd", "mse")
        model.fit(tf.zeros([512, 1024]), tf.zeros([512, 1]), batch_size=128, verbose=0)
        kept = model
    elif "xla" in options:
        kept = tf.function(work, jit_compile=False)()
        step = tf.function(lambda x: tf.reduce_sum(tf.matmul(x, x)), jit_compile=True)
        kept.append(step(kept[0]))
    else:
        kept = []
        for device in tf.config.list_logical_devices("GPU"):
            with tf.device(device.name):
                kept += work()
if "spikes" in options:
    time.sleep(4)
    for _ in range(20):
        spike = tf.raw_ops.Empty(shape=[125 << 20], dtype=tf.float32, init=False)
        time.sleep(0.005)
        del spike
        time.sleep(0.25)
time.sleep(3)
since = time.time()
time.sleep(3)
figures = {}
out = (ctypes.c_long * 6)()
for index in range(16):
    if library.truth(index, out):
        figures[f"GPU:{index}"] = list(out)
print(json.dumps({"since": since, "until": time.time(), "figures": figures}))
"""
)

ALONE = {
    "growth": ([], ["growth"]),
    "growth-on-by-us": (["--growth", "on"], []),
    "everything-at-once": (["--growth", "off"], []),
    "limit": (["--memory-limit", "4G"], []),
    "growth-and-limit": (["--growth", "on", "--memory-limit", "4G"], []),
    "two-logical-devices": (["--growth", "on"], ["split"]),
    "cuda_malloc_async": (["--allocator", "cuda_malloc_async"], []),
    "xla": (["--growth", "on"], ["xla"]),
    "session": ([], ["session"]),
}
TOGETHER = {
    "both-cards": (["--growth", "on"], []),
    "mirrored": (["--growth", "on"], ["mirrored"]),
    "session-on-two": ([], ["session"]),
}


def watch(folder: Path, options: list[str], arguments: list[str]) -> tuple[dict[str, Any], list[events.Event]]:
    """Run the script. Return its own figures, and all events of the recording."""
    path = kept(folder) / f"{folder.parent.name}-{folder.name}.jsonl"
    script = folder / "train.py"
    script.write_text(SCRIPT)
    done, stream = record(path, options, str(script), str(folder / "truth.so"), *arguments)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout), stream


def check(said: dict[str, Any], stream: list[events.Event]) -> None:
    """Check that all readings equal the script's own figures, exact to the byte, and that maps add up to them."""
    probes = [event for event in stream if isinstance(event, events.Probe)]
    assert probes and probes[-1].state is events.ProbeState.LOADED, probes
    still = held(said, stream)
    assert said["figures"]
    for device, (in_use, peak, pool, peak_pool, limit, allocations) in said["figures"].items():
        known = [None if figure < 0 else figure for figure in (pool, peak_pool, limit)]
        readings = [event for event in still if isinstance(event, events.Allocator) and event.device == device]
        assert len(readings) >= 15
        assert {(one.in_use, one.peak, one.high) for one in readings} == {(in_use, peak, in_use)}
        assert {(one.pool, one.peak_pool, one.limit) for one in readings} == {tuple(known)}
        assert {one.allocations for one in readings} == {allocations}
        maps = [event for event in still if isinstance(event, events.MemoryMap) and event.device == device]
        for found in maps:
            assert (found.in_use, found.pool) == (in_use, pool)
            assert found.cells or not pool
        without = [event for event in stream if isinstance(event, events.MemoryMap) and event.is_missing]
        assert maps or not pool or [event.device for event in without].count(device) == 1
    assert not [event for event in stream if isinstance(event, events.HookError)]


@pytest.mark.parametrize("name", ALONE)
def test_pools_are_what_the_allocator_says(name: str, tmp_path: Path) -> None:
    said, stream = watch(tmp_path, *ALONE[name])
    check(said, stream)
    asynchronous = name == "cuda_malloc_async"
    maps = [event for event in stream if isinstance(event, events.MemoryMap) and event.device.startswith("GPU")]
    missing = {event.is_missing for event in maps}  # the pinned host pool is always a BFC pool
    assert missing == {asynchronous}
    names = {event.allocator for event in stream if isinstance(event, events.Allocator) and event.device == "GPU:0"}
    assert "GPU_0_bfc" in names or asynchronous
    if name == "session":
        effective = next(event for event in stream if isinstance(event, events.Effective))
        assert effective.uuid is not None and effective.growth is True
    pinned = [event for event in stream if isinstance(event, events.Allocator) and event.device == "HOST:0"]
    assert all(event.pool is not None for event in pinned)


@pytest.mark.parametrize("name", ["growth-on-by-us", "everything-at-once", "limit", "growth-and-limit", "xla"])
def test_layers_add_up_to_nvmls_total(name: str, tmp_path: Path) -> None:
    """NVML's total minus the pool is context and outside: above zero, and not more than libraries and kernels take."""
    said, stream = watch(tmp_path, *ALONE[name])
    still = held(said, stream, settle_s=1.2)
    pids = {event.pid for event in stream if isinstance(event, events.Allocator)}
    totals = {
        process.used
        for event in still
        if isinstance(event, events.DeviceReading)
        for process in event.processes
        if process.pid in pids
    }
    (total,) = totals
    assert total is not None
    outside = total - said["figures"]["GPU:0"][2]
    print(f"{name}: process total {total / MIB:.1f} MiB, pool {said['figures']['GPU:0'][2] / MIB:.1f} MiB, "
          f"context and outside {outside / MIB:.1f} MiB")  # fmt: skip
    assert 300 * MIB < outside < 1500 * MIB


def test_every_spike_of_five_milliseconds_is_seen(tmp_path: Path) -> None:
    said, stream = watch(tmp_path, ["--growth", "on"], ["spikes"])
    # All but the first are below the peak, so that only the sampler can have noticed them.
    spikes = [
        event
        for event in stream
        if isinstance(event, events.Allocator) and (event.high or 0) >= (said["figures"]["GPU:0"][0] + 500 * MIB)
    ]
    assert 20 <= len(spikes) <= 40


@pytest.mark.gpus2
@pytest.mark.parametrize("name", TOGETHER)
def test_both_cards(name: str, tmp_path: Path) -> None:
    said, stream = watch(tmp_path, *TOGETHER[name])
    assert set(said["figures"]) == {"GPU:0", "GPU:1"}
    check(said, stream)
    effective = {event.device: event for event in stream if isinstance(event, events.Effective)}
    cards = {event.uuid for event in stream if isinstance(event, events.Device)}
    used = {event.uuid for event in effective.values()}
    assert len(used) == 2 and used <= cards
