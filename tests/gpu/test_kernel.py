"""A notebook's kernel on a GPU. Run by hand: ``pytest -m gpu tests/gpu/test_kernel.py``."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.notebook import Notebook, jupyter
from tests.notebooks.test_screen import _screen, _shown, _until
from tests.patience import until
from tests.ui.shown import press
from tfmemtop import events as ev
from tfmemtop.engine.stream.folders import SessionInfo
from tfmemtop.engine.stream.kept_sessions import place_for
from tfmemtop.events.recording import RecordingError, read
from tfmemtop.ui.app import TfmemtopApp

__all__ = ["jupyter"]  # the fixture

MIB = 1 << 20
HOLD = """
import json
import tensorflow as tf
kept = tf.zeros([256, 1024, 256])
tf.zeros([16]).numpy()
info = tf.config.experimental.get_memory_info("GPU:0")
print(json.dumps([info["current"], info["peak"]]))
"""
"""A cell that takes 256 MiB, and prints TensorFlow's bytes in use and their peak."""


def _pool(session: SessionInfo) -> ev.Allocator | None:
    """Return the newest recorded reading of the first GPU's pool, or None if there is none yet."""
    try:
        found = [each for each in read(place_for(session.id)).events() if isinstance(each, ev.Allocator)]
    except RecordingError:
        return None  # the recording has just begun
    return next((each for each in reversed(found) if each.device == "GPU:0"), None)


def _agrees(session: SessionInfo, said: list[int]) -> ev.Allocator | None:
    pool = _pool(session)
    return pool if pool and [pool.in_use, pool.peak] == said else None


@pytest.mark.gpu
async def test_a_kernel_is_restarted_with_growth_and_a_limit(jupyter: Path) -> None:
    notebook = await asyncio.to_thread(Notebook)
    try:
        said = json.loads((await asyncio.to_thread(notebook.run, HOLD)).splitlines()[-1])
        first = notebook.session()
        pool = await asyncio.to_thread(until, lambda: _agrees(first, said))
        assert pool.limit > 10 << 30 and pool.pool == pool.limit  # nothing was set
        async with (await _screen(first)).run_test(size=(140, 40)) as pilot:
            await _shown(pilot, "run 1")
            shown = pilot.app
            assert isinstance(shown, TfmemtopApp)
            await press(pilot, "G")
            await _until(pilot, lambda: shown.state.upcoming and shown.state.upcoming.growth == "on")
            await press(pilot, "L", *"1G", "enter")
            await _until(pilot, lambda: shown.state.upcoming and shown.state.upcoming.memory_limit == 1024 * MIB)
            await press(pilot, "Q")
        await asyncio.to_thread(notebook.restart)
        second = notebook.session()
        said = json.loads((await asyncio.to_thread(notebook.run, HOLD)).splitlines()[-1])
        pool = await asyncio.to_thread(until, lambda: _agrees(second, said))
        assert pool.limit == 1024 * MIB and pool.in_use <= pool.pool < 400 * MIB
        assert "ResourceExhaustedError" in await asyncio.to_thread(notebook.run, "tf.zeros([1024, 1024, 256])")
    finally:
        notebook.end(now=True)
