"""The hook is put into a training that already runs on a GPU.

These tests are run by hand: ``pytest -m gpu tests/gpu/test_injection.py``. ``TFMEMTOP_TEST_PYTHON`` must name a Python
3.14 that has TensorFlow.
"""

import functools
import os

import pytest

from tests.engines import Engines, Screen, engines
from tests.newer_python import Obeying, has_tensorflow, needs_it
from tfmemtop.events import (
    Allocator,
    Census,
    Effective,
    HookError,
    Injection,
    InjectionState,
    MapWanted,
    MemoryMap,
    RunEnd,
)

__all__ = ["engines"]  # the fixture

MIB = 1 << 20
GPU = "tf.config.list_physical_devices('GPU')[0]"
SETTINGS = {
    "growth": f"tf.config.experimental.set_memory_growth({GPU}, True)",
    "limit": f"tf.config.set_logical_device_configuration({GPU}, [tf.config.LogicalDeviceConfiguration(2048)])",
    "two-logical-devices": (
        f"tf.config.set_logical_device_configuration({GPU}, [tf.config.LogicalDeviceConfiguration(2048)] * 2)"
    ),
}
HOLD = """
for device in tf.config.list_logical_devices("GPU"):
    with tf.device(device.name):
        kept.append(tf.Variable(tf.ones([1024, 1024]), name="weights"))
"""
SETUP = ("kept = []", f"exec({HOLD!r})", "float(tf.matmul(kept[0], kept[0])[0, 0])")


def _later(screen: Screen, after: int, device: str, reading: Allocator) -> bool:
    return reading.device == device and reading in screen.events[after:]


@needs_it
@pytest.mark.gpu
@pytest.mark.skipif(not has_tensorflow(), reason="that Python has no TensorFlow")
@pytest.mark.parametrize("name", SETTINGS)
async def test_figures_are_the_script_s_own_to_the_byte(engines: Engines, name: str) -> None:
    target = Obeying(CUDA_VISIBLE_DEVICES=os.environ.get("CUDA_VISIBLE_DEVICES", "0"))
    try:
        target.do("import tensorflow as tf")
        for line in (SETTINGS[name], *SETUP):
            target.do(line)
        screen = await engines.run(attach=target.pid, inject=True)
        await screen.until(Injection, lambda one: one.state is InjectionState.ASKED)
        target.do("1")
        await screen.until(Injection, lambda one: one.state is InjectionState.ARRIVED)
        # The event before it is made from outside, which knows neither the card's number nor the limit.
        effective = await screen.until(Effective, lambda one: one.device == "GPU:0" and one.physical is not None)
        assert effective.growth is (name == "growth")
        assert name == "growth" or effective.limit == 2048 * MIB
        devices = ["GPU:0", "GPU:1"] if name == "two-logical-devices" else ["GPU:0"]
        census = await screen.until(Census)
        assert sum(one.name == "weights" for one in census.largest) == len(devices)

        target.do("spike = tf.zeros([256, 1024, 1024])")
        target.do("del spike")
        for device in devices:
            figures = target.do(f"tf.config.experimental.get_memory_info({device!r})")
            now = len(screen.events)
            wanted = functools.partial(_later, screen, now, device)
            reading = await screen.until(Allocator, wanted)
            assert (reading.in_use, reading.peak) == (figures["current"], figures["peak"])
            assert reading.pool is not None and reading.in_use is not None and reading.in_use <= reading.pool
        await screen.client.send(MapWanted(pid=target.pid, device="GPU:0", pace_s=0.2))
        memory_map = await screen.until(MemoryMap, lambda one: one.device == "GPU:0" and one.pool > 0)
        assert (memory_map.mapless, memory_map.damage) == (None, None) and memory_map.chunks > 0
        assert not screen.all(HookError)
        assert target.end()[0] == 0
        await screen.until(RunEnd)
    finally:
        target.close()
